// Named as PyTorch's library of allocators is: what calls the driver from here is PyTorch's allocator, as far as
// anybody can tell. Opened by fake_torch_program.
#include <cuda.h>

#define TAKES extern "C" __attribute__((visibility("default"))) CUresult

// Answers are looked at, as everywhere in PyTorch: by a jump to the driver the caller's caller would call it.
TAKES take_block(CUdeviceptr* address, size_t bytes) {
  const volatile CUresult result = cuMemAlloc(address, bytes);
  return result;
}
TAKES take_tensor(CUdeviceptr* address, size_t bytes) {
  const volatile CUresult result = cuMemAllocAsync(address, bytes, nullptr);
  return result;
}
TAKES take_segment(CUmemGenericAllocationHandle* handle, size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return cuMemCreate(handle, bytes, &properties, 0);
}

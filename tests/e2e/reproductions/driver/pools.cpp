// Stream-ordered pools of the program's own: of host memory, of managed memory, of another device, for other processes.
// Each gives what it was made for, whatever else is managed.
#include "tests/e2e/support/driver_program.h"

namespace {

using program::kMiB;

void take(const char* name, CUmemAllocationType kind, CUmemLocation location, CUmemAllocationHandleType handles,
          CUstream stream) {
  CUmemPoolProps properties = {};
  properties.allocType = kind;
  properties.location = location;
  properties.handleTypes = handles;
  CUmemoryPool pool = nullptr;
  CHECK(cuMemPoolCreate(&pool, &properties));
  CUdeviceptr memory = 0;
  CHECK(cuMemAllocFromPoolAsync(&memory, 4 * kMiB, pool, stream));
  CHECK(cuStreamSynchronize(stream));
  unsigned type = 0, managed = 0;
  int device = -1;
  cuuint64_t used = 0;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  CHECK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
  CHECK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  CHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  std::printf("%s: memory type %u, managed %u, device %d, %llu bytes used\n", name, type, managed, device,
              static_cast<unsigned long long>(used));
  const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemPoolSetAccess(pool, &access, 1));
  CHECK(cuMemsetD32Async(memory, 77, kMiB, stream));
  CHECK(cuStreamSynchronize(stream));
  std::printf("%u\n", program::word(memory));
  CHECK(cuMemFreeAsync(memory, stream));
  CHECK(cuStreamSynchronize(stream));
  CHECK(cuMemPoolDestroy(pool));
}

}  // namespace

int main() {
  program::open_device();
  const CUstream stream = program::new_stream();
  CUdeviceptr tensors[4];
  for (unsigned i = 0; i < 4; ++i) tensors[i] = program::filled(6, 100 + i);
  constexpr auto kPinned = CU_MEM_ALLOCATION_TYPE_PINNED;
  constexpr auto kManaged = CU_MEM_ALLOCATION_TYPE_MANAGED;
  constexpr auto kAlone = CU_MEM_HANDLE_TYPE_NONE;
  constexpr auto kShared = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  take("host", kPinned, {CU_MEM_LOCATION_TYPE_HOST, 0}, kAlone, stream);
  take("node", kPinned, {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, kAlone, stream);
  take("managed", kManaged, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, kAlone, stream);
  take("device", kPinned, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, kAlone, stream);
  take("other device", kPinned, {CU_MEM_LOCATION_TYPE_DEVICE, 1}, kAlone, stream);
  take("shared", kPinned, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, kShared, stream);
  for (const CUdeviceptr tensor : tensors) std::printf("%u\n", program::word(tensor));
  return 0;
}

#include "preload/defragment/device_memory.h"

#include "preload/driver/driver.h"

namespace reprise {

uint64_t DeviceMemory::open(CUdevice device, CUcontext context) noexcept {
  context_ = context;
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = device;
  access_.location = properties_.location;
  access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  int supported = 0;
  size_t bytes = 0;
  if (driver().cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) !=
          CUDA_SUCCESS ||
      supported == 0 ||
      driver().cuMemGetAllocationGranularity(&bytes, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) {
    return 0;
  }
  return chunk_bytes_ = bytes;
}

stitch::Result DeviceMemory::noted(CUresult result) noexcept {
  if (result == CUDA_SUCCESS) return stitch::Result::ok;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return stitch::Result::out_of_memory;
  error_ = result;
  return stitch::Result::failed;
}

stitch::Result DeviceMemory::create(uint64_t* handle) noexcept {
  ++driver_calls_;
  CUmemGenericAllocationHandle made = 0;
  const CUresult result = driver().cuMemCreate(&made, chunk_bytes_, &properties_, 0);
  *handle = made;
  return noted(result);
}

void DeviceMemory::destroy(uint64_t handle) noexcept {
  ++driver_calls_;
  driver().cuMemRelease(handle);
}

stitch::Result DeviceMemory::map(const uint64_t* handles, uint32_t count, uint64_t* address) noexcept {
  const uint64_t bytes = count * chunk_bytes_;
  CUdeviceptr base = 0;
  ++driver_calls_;
  CUresult result = driver().cuMemAddressReserve(&base, bytes, 0, 0, 0);
  if (result != CUDA_SUCCESS) return noted(result);
  uint32_t mapped = 0;
  for (; mapped < count && result == CUDA_SUCCESS; ++mapped) {
    ++driver_calls_;
    result = driver().cuMemMap(base + mapped * chunk_bytes_, chunk_bytes_, 0, handles[mapped], 0);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) result = set_access(base, bytes);
  if (result == CUDA_SUCCESS) {
    *address = base;
    return stitch::Result::ok;
  }
  if (mapped != 0) unmap(base, mapped);
  unreserve(base, count);
  return noted(result);
}

// The driver may answer NOT_READY while other threads queue work: then everything that is queued has to finish first.
CUresult DeviceMemory::set_access(CUdeviceptr address, uint64_t bytes) noexcept {
  CUresult result = CUDA_ERROR_NOT_READY;
  for (int attempt = 0; attempt < 3 && result == CUDA_ERROR_NOT_READY; ++attempt) {
    if (attempt > 0) settle();
    ++driver_calls_;
    result = driver().cuMemSetAccess(address, bytes, &access_, 1);
  }
  return result;
}

// One call for the whole range where the driver takes it, else one per chunk.
void DeviceMemory::unmap(uint64_t address, uint32_t count) noexcept {
  ++driver_calls_;
  if (driver().cuMemUnmap(address, count * chunk_bytes_) != CUDA_ERROR_INVALID_VALUE || count == 1) return;
  for (uint32_t i = 0; i < count; ++i) {
    ++driver_calls_;
    driver().cuMemUnmap(address + i * chunk_bytes_, chunk_bytes_);
  }
}

void DeviceMemory::unreserve(uint64_t address, uint32_t count) noexcept {
  ++driver_calls_;
  driver().cuMemAddressFree(address, count * chunk_bytes_);
}

void DeviceMemory::settle() noexcept { synchronize_context(context_); }

CUresult synchronize_context(CUcontext context) noexcept {
  CUcontext current = nullptr;
  if (driver().cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) return driver().cuCtxSynchronize();
  if (const CUresult result = driver().cuCtxPushCurrent(context); result != CUDA_SUCCESS) return result;
  const CUresult result = driver().cuCtxSynchronize();
  driver().cuCtxPopCurrent(&current);
  return result;
}

}  // namespace reprise

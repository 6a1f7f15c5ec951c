// cuMemCreate, cuMemMap and what belongs to them.
#include <fcntl.h>

#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/vmm.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

bool is_unit(uint64_t value) { return value % settings().granularity == 0; }

CUresult check_properties(const CUmemAllocationProp& properties) {
  SIM_REQUIRE(properties.type == CU_MEM_ALLOCATION_TYPE_PINNED, CUDA_ERROR_INVALID_VALUE);
  switch (properties.location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      SIM_REQUIRE(find_device(properties.location.id) != nullptr, CUDA_ERROR_INVALID_DEVICE);
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
      SIM_REQUIRE(properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE, CUDA_ERROR_INVALID_VALUE);
      break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      SIM_REQUIRE(properties.location.id >= 0, CUDA_ERROR_INVALID_VALUE);
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  const auto types = properties.requestedHandleTypes;
  SIM_REQUIRE(types == CU_MEM_HANDLE_TYPE_NONE || types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
              CUDA_ERROR_NOT_SUPPORTED);
  return CUDA_SUCCESS;
}

// Counters are kept by the device of the memory; host memory counts for device 0.
Device& counted(const Device* device) { return device == nullptr ? *find_device(0) : *find_device(device->ordinal); }

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags option) {
  SIM_ENTER();
  SIM_REQUIRE(granularity != nullptr && prop != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
              CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_properties(*prop));
  SIM_REQUIRE(has_physical_memory(), CUDA_ERROR_NOT_SUPPORTED);
  *granularity = settings().granularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  SIM_REQUIRE(ptr != nullptr && size != 0 && is_unit(size) && flags == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE((alignment & (alignment - 1)) == 0, CUDA_ERROR_INVALID_VALUE);
  const uint64_t used = alignment > settings().granularity ? alignment : settings().granularity;
  const uint64_t base = reserve_range(size, used, addr);
  SIM_REQUIRE(base != 0, CUDA_ERROR_OUT_OF_MEMORY);
  *ptr = base;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  return free_range(ptr, size);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  SIM_REQUIRE(handle != nullptr && prop != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(check_properties(*prop));
  SIM_REQUIRE(size != 0 && is_unit(size), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<PhysicalChunk> chunk;
  SIM_TRY(create_chunk(size, *prop, &chunk));
  ++counted(chunk->device).counters.create_calls;
  *handle = chunks().add(std::move(chunk));
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  const std::shared_ptr<PhysicalChunk> chunk = chunks().share(handle);
  SIM_REQUIRE(chunk != nullptr, CUDA_ERROR_INVALID_VALUE);
  ++counted(chunk->device).counters.release_calls;
  if (chunk->handle_references.fetch_sub(1) == 1) chunks().remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  SIM_REQUIRE(ptr != 0 && is_unit(ptr) && size != 0 && flags == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(offset == 0 && is_unit(size), CUDA_ERROR_NOT_SUPPORTED);  // as an H100 said, driver 580
  const std::shared_ptr<PhysicalChunk> chunk = chunks().share(handle);
  SIM_REQUIRE(chunk != nullptr, CUDA_ERROR_INVALID_VALUE);
  ++counted(chunk->device).counters.map_calls;
  return map_chunk(ptr, size, chunk);
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  const auto range = memory_map().find(ptr);
  if (range) ++counted(range->device).counters.unmap_calls;
  return unmap_chunks(ptr, size);
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count) {
  SIM_ENTER();
  SIM_TRY(sticky_error());
  SIM_REQUIRE(ptr != 0 && size != 0 && desc != nullptr && count != 0, CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(ptr);
  if (range) ++counted(range->device).counters.set_access_calls;
  return set_access(ptr, size, desc, count);
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr) {
  SIM_ENTER();
  SIM_REQUIRE(flags != nullptr && location != nullptr, CUDA_ERROR_INVALID_VALUE);
  const bool device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  SIM_REQUIRE(device || location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA,
              CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(!device || find_device(location->id) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  const auto range = memory_map().find(ptr);
  SIM_REQUIRE(range && range->kind == RangeKind::mapping, CUDA_ERROR_INVALID_VALUE);
  const uint64_t mask = 1ull << (device ? location->id : 63);
  *flags = (range->writers & mask) != 0   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : (range->readers & mask) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                          : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* addr) {
  SIM_ENTER();
  SIM_REQUIRE(handle != nullptr && addr != nullptr, CUDA_ERROR_INVALID_VALUE);
  const auto range = memory_map().find(reinterpret_cast<uint64_t>(addr));
  SIM_REQUIRE(range && range->kind == RangeKind::mapping, CUDA_ERROR_INVALID_VALUE);
  for (const auto& [existing, chunk] : chunks().all()) {
    if (chunk != range->chunk) continue;
    ++chunk->handle_references;
    *handle = existing;
    return CUDA_SUCCESS;
  }
  range->chunk->handle_references = 1;
  *handle = chunks().add(range->chunk);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  SIM_ENTER();
  const std::shared_ptr<PhysicalChunk> chunk = chunks().share(handle);
  SIM_REQUIRE(prop != nullptr && chunk != nullptr, CUDA_ERROR_INVALID_VALUE);
  *prop = chunk->properties;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags) {
  SIM_ENTER();
  const std::shared_ptr<PhysicalChunk> chunk = chunks().share(handle);
  SIM_REQUIRE(shareableHandle != nullptr && chunk != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && chunk->own_file, CUDA_ERROR_INVALID_VALUE);
  const int file = fcntl(chunk->file, F_DUPFD_CLOEXEC, 0);
  SIM_REQUIRE(file >= 0, CUDA_ERROR_OPERATING_SYSTEM);
  *static_cast<int*>(shareableHandle) = file;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* osHandle,
                                        CUmemAllocationHandleType shHandleType) {
  SIM_ENTER();
  SIM_REQUIRE(handle != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
  std::shared_ptr<PhysicalChunk> chunk;
  SIM_TRY(import_chunk(static_cast<int>(reinterpret_cast<intptr_t>(osHandle)), &chunk));
  *handle = chunks().add(std::move(chunk));
  return CUDA_SUCCESS;
}

}  // extern "C"

// Pinned host memory: known, so that copies and kernels that use it can be told apart from pageable ones; never moved.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/memory_calls.h"

namespace reprise {
namespace {

CUresult pinned(CUresult result, const void* address, size_t bytes, bool write_combined) {
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS || address == nullptr || bytes == 0) return result;
  Allocation marks;
  marks.write_combined = write_combined;
  record_allocated(make_allocate_call(bytes, trace::Origin::host, CU_STREAM_LEGACY),
                   reinterpret_cast<CUdeviceptr>(address), marks);
  return result;
}

// Copies that are still deferred may read or write the memory.
template <typename Unpin>
CUresult unpinned(RowId id, void* address, Unpin unpin) {
  const HookScope scope;
  if (!scope) return unpin(address);
  if (const CUresult result = before_ordered(id); result != CUDA_SUCCESS) return result;
  Allocation allocation;
  FreeCall call;
  const bool known = take_allocation(reinterpret_cast<CUdeviceptr>(address), CU_STREAM_LEGACY, &allocation, &call);
  const CUresult result = unpin(address);
  if (known) record_freed(call, allocation, result);
  return result;
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuMemHostAlloc(void** address, size_t bytes, unsigned flags) {
  const CUresult result = driver().cuMemHostAlloc(address, bytes, flags);
  return pinned(result, result == CUDA_SUCCESS ? *address : nullptr, bytes,
                (flags & CU_MEMHOSTALLOC_WRITECOMBINED) != 0);
}
REPRISE_EXPORT CUresult cuMemAllocHost_v2(void** address, size_t bytes) {
  const CUresult result = driver().cuMemAllocHost_v2(address, bytes);
  return pinned(result, result == CUDA_SUCCESS ? *address : nullptr, bytes, false);
}
REPRISE_EXPORT CUresult cuMemFreeHost(void* address) {
  return unpinned(RowId::k_cuMemFreeHost, address, [](void* host) { return driver().cuMemFreeHost(host); });
}
REPRISE_EXPORT CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags) {
  return pinned(driver().cuMemHostRegister_v2(address, bytes, flags), address, bytes, false);
}
REPRISE_EXPORT CUresult cuMemHostUnregister(void* address) {
  return unpinned(RowId::k_cuMemHostUnregister, address, [](void* host) { return driver().cuMemHostUnregister(host); });
}

// The forms of before CUDA 3.2 and 6.5.
#undef cuMemAllocHost
#undef cuMemHostRegister
REPRISE_EXPORT CUresult cuMemAllocHost(void** address, unsigned bytes) {
  const CUresult result = driver().cuMemAllocHost_v1(address, bytes);
  return pinned(result, result == CUDA_SUCCESS ? *address : nullptr, bytes, false);
}
REPRISE_EXPORT CUresult cuMemHostRegister(void* address, size_t bytes, unsigned flags) {
  return pinned(driver().cuMemHostRegister_v1(address, bytes, flags), address, bytes, false);
}

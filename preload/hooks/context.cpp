// The end of a context: what Reprise has in it goes first. Its limits, and which devices may reach its memory.
#include <atomic>

#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/memory_calls.h"

namespace reprise {
namespace {

constexpr int kMostDevices = 64;
std::atomic<int> retained[kMostDevices];  // by device: references of the program to the primary context

// nullptr: it is not alive.
CUcontext primary_context(CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  CUcontext context = nullptr;
  if (driver().cuDevicePrimaryCtxGetState(device, &flags, &active) != CUDA_SUCCESS || active == 0) return nullptr;
  if (driver().cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS) return nullptr;
  driver().cuDevicePrimaryCtxRelease(device);
  return context;
}

// An allocation goes with its context.
void freed(CUdeviceptr address) noexcept {
  Allocation allocation;
  FreeCall call;
  if (take_allocation(address, CU_STREAM_LEGACY, &allocation, &call)) record_freed(call, allocation, CUDA_SUCCESS);
}

CUresult before_end(RowId id, CUcontext context) {
  const CUresult order = before_ordered(id);
  if (order != CUDA_SUCCESS || context == nullptr || runtime().handler == nullptr) return order;
  return runtime().handler->memory.context_end(context, &freed);
}

CUresult reset(CUdevice device) {
  const HookScope scope;
  if (scope) {
    const CUresult result = before_end(RowId::k_cuDevicePrimaryCtxReset_v2, primary_context(device));
    if (result != CUDA_SUCCESS) return result;
  }
  return driver().cuDevicePrimaryCtxReset(device);
}

CUresult release(CUdevice device) {
  const HookScope scope;
  const bool known = device >= 0 && device < kMostDevices;
  const bool last = known && retained[device].load() == 1;
  if (scope && last) {
    const CUresult result = before_end(RowId::k_cuDevicePrimaryCtxRelease_v2, primary_context(device));
    if (result != CUDA_SUCCESS) return result;
  }
  const CUresult result = driver().cuDevicePrimaryCtxRelease(device);
  if (known && result == CUDA_SUCCESS) retained[device].fetch_sub(1);
  return result;
}

CUresult destroy(CUcontext context) {
  const HookScope scope;
  if (scope) {
    const CUresult result = before_end(RowId::k_cuCtxDestroy_v2, context);
    if (result != CUDA_SUCCESS) return result;
  }
  return driver().cuCtxDestroy(context);
}

bool device_of(CUcontext context, CUdevice* device) {
  if (driver().cuCtxPushCurrent(context) != CUDA_SUCCESS) return false;
  const bool known = driver().cuCtxGetDevice(device) == CUDA_SUCCESS;
  driver().cuCtxPopCurrent(&context);
  return known;
}

}  // namespace
}  // namespace reprise

using namespace reprise;

#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuCtxDestroy
REPRISE_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const CUresult result = driver().cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS && device >= 0 && device < kMostDevices) retained[device].fetch_add(1);
  return result;
}
REPRISE_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return release(device); }
REPRISE_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) { return release(device); }
REPRISE_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device) { return reset(device); }
REPRISE_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) { return reset(device); }
REPRISE_EXPORT CUresult cuCtxDestroy(CUcontext context) { return destroy(context); }
REPRISE_EXPORT CUresult cuCtxDestroy_v2(CUcontext context) { return destroy(context); }

// Stacks, heaps and buffers of kernels lie in device memory.
REPRISE_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  if (const HookScope scope; scope) {
    if (const CUresult order = before_ordered(RowId::k_cuCtxSetLimit); order != CUDA_SUCCESS) return order;
  }
  return with_memory_of_the_driver([&] { return driver().cuCtxSetLimit(limit, value); });
}

// The current context may reach memory of the other one.
REPRISE_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext owner, unsigned flags) {
  const HookScope scope;
  if (!scope) return driver().cuCtxEnablePeerAccess(owner, flags);
  if (const CUresult order = before_ordered(RowId::k_cuCtxEnablePeerAccess); order != CUDA_SUCCESS) return order;
  const CUresult result = driver().cuCtxEnablePeerAccess(owner, flags);
  CUdevice device = 0;
  CUdevice peer = 0;
  if (result != CUDA_SUCCESS || driver().cuCtxGetDevice(&peer) != CUDA_SUCCESS || !device_of(owner, &device))
    return result;
  return runtime().handler->memory.peer_allowed(device, peer);
}

// Device memory: allocation and release.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/calls/declared.h"
#include "preload/calls/handler.h"
#include "preload/defragment/defragmenter.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/frameworks/torch_allocator.h"
#include "preload/hooks/memory_calls.h"
#include "preload/tracking/pools.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

// What cuMemAllocPitch gives: rows start at multiples of this (the alignment that textures and cuMemcpy2D like).
constexpr size_t kPitchAlignment = 512;

CUresult allocate(CUdeviceptr* address, size_t bytes, trace::Origin origin, CUstream stream, CUmemoryPool pool) {
  CUresult result = CUDA_SUCCESS;
  AllocateCall call = make_allocate_call(bytes, origin, stream, &result);
  call.pool = pool;
  // Without its context the memory would not be managed, and count against the budget all the same.
  if (result != CUDA_SUCCESS) return result;
  result = runtime().handler->memory.allocate(call, address);
  if (result == CUDA_SUCCESS) record_allocated(call, *address);
  return result;
}

// What the driver has just made, as the trace calls it. Device memory that is not ours to make is a fixed place, as a
// module's variable is.
trace::Origin origin_of(CUdeviceptr address) {
  unsigned managed = 0;
  unsigned type = CU_MEMORYTYPE_DEVICE;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  void* values[] = {&managed, &type};
  if (driver().cuPointerGetAttributes(2, attributes, values, address) != CUDA_SUCCESS) return trace::Origin::global;
  if (managed != 0) return trace::Origin::managed;
  return type == CU_MEMORYTYPE_HOST ? trace::Origin::host : trace::Origin::global;
}

// From a pool that is not of ordinary memory of the current device: the driver makes it, and it is never moved.
template <typename Call>
CUresult allocate_around(const HookScope& scope, CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream,
                         Call call) {
  const CUstream own = runtime().handler->order.stand_in(stream);
  const auto make = [&] { return call(own); };
  const CUdevice device = place_of_pool(pool, current_device());
  const BesideCall beside{BesideKind::pool, "cuMemAllocFromPoolAsync", device, bytes};
  const CUresult result = device < 0 ? make() : beside_ours(scope, beside, make);
  if (result != CUDA_SUCCESS) return result;
  record_allocated(make_allocate_call(bytes, origin_of(*address), stream), *address);
  return CUDA_SUCCESS;
}

// A library's own memory, which its launches may reach in ways that no argument tells: it stays where the driver makes
// it.
CUresult allocate_for_library(const HookScope& scope, CUdeviceptr* address, size_t bytes) {
  const BesideCall beside{BesideKind::pool, "cuMemAlloc", current_device(), bytes};
  const CUresult result = beside_ours(scope, beside, [&] { return driver().cuMemAlloc(address, bytes); });
  if (result != CUDA_SUCCESS) return result;
  record_allocated(make_allocate_call(bytes, trace::Origin::global, CU_STREAM_LEGACY), *address);
  return CUDA_SUCCESS;
}

// Does a free of this give back memory that was made around us? Module's variables are freed in no such way.
bool is_beside(const Allocation& allocation, bool stream_ordered, BesideCall* call) {
  const bool pool =
      allocation.origin == trace::Origin::global || (allocation.origin == trace::Origin::managed && stream_ordered);
  const bool ours = is_device_memory(allocation.origin);
  if (allocation.origin == trace::Origin::host ||
      (ours && (!managing() || runtime().handler->memory.makes(allocation.address)))) {
    return false;
  }
  call->kind = pool ? BesideKind::pool : ours ? BesideKind::elsewhere : BesideKind::managed;
  call->name = "cuMemFree";
  call->device = allocation.device;
  call->given_back = call->kind == BesideKind::managed ? 0 : allocation.size;
  return true;
}

CUresult release(CUdeviceptr address, CUstream stream, bool stream_ordered) {
  Allocation allocation;
  FreeCall call;
  const auto forward = [&] {
    if (!stream_ordered) return driver().cuMemFree(address);
    return driver().cuMemFreeAsync(address, runtime().handler->order.stand_in(stream));
  };
  if (!take_allocation(address, stream, &allocation, &call)) {
    // 0, an address inside an allocation, or memory that no hook saw: the driver answers.
    const CUresult order = address != 0 ? before_ordered(RowId::k_cuMemFree_v2) : CUDA_SUCCESS;
    return order == CUDA_SUCCESS ? forward() : order;
  }
  call.stream_ordered = stream_ordered;
  BesideCall beside;
  const bool counts = is_beside(allocation, stream_ordered, &beside);
  if (counts) runtime().handler->memory.before_beside(&beside);
  CUresult result;
  if (!is_device_memory(allocation.origin)) {
    result = before_ordered(RowId::k_cuMemFree_v2);
    if (result == CUDA_SUCCESS) result = forward();
  } else if (stream_ordered && managing() && allocation.origin != trace::Origin::async &&
             allocation.origin != trace::Origin::pool) {
    result = CUDA_ERROR_INVALID_VALUE;  // as the driver answers for memory that is not stream-ordered
  } else {
    result = runtime().handler->memory.release(call);
  }
  if (counts) runtime().handler->memory.after_beside(beside, result);
  record_freed(call, allocation, result);
  return result;
}

// This makes a node of the graph, whose memory is the graph's.
template <typename Call>
CUresult in_capture(const HookScope& scope, const char* name, CUdevice device, size_t bytes, Call call) {
  return beside_ours(scope, {BesideKind::graph, name, device, bytes}, call);
}

CUresult allocate_async(CUdeviceptr* address, size_t bytes, CUstream stream) {
  if (const HookScope scope(defragmenting()); scope)
    return runtime().defragmenter->allocate_async(address, bytes, stream);
  const HookScope scope;
  if (!scope || address == nullptr || bytes == 0) return driver().cuMemAllocAsync(address, bytes, stream);
  const CUdevice device = current_device();
  if (capturing(stream)) {
    return in_capture(scope, "a captured cuMemAllocAsync", device, bytes,
                      [&] { return driver().cuMemAllocAsync(address, bytes, stream); });
  }
  CUmemoryPool pool = nullptr;
  if (driver().cuDeviceGetMemPool(&pool, device) == CUDA_SUCCESS && !is_plain_pool(pool, device)) {
    return allocate_around(scope, address, bytes, pool, stream,
                           [&](CUstream own) { return driver().cuMemAllocAsync(address, bytes, own); });
  }
  return allocate(address, bytes, trace::Origin::async, stream, pool);
}

CUresult allocate_from_pool(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  const HookScope scope;
  const auto forward = [&](CUstream own) { return driver().cuMemAllocFromPoolAsync(address, bytes, pool, own); };
  if (!scope || address == nullptr || bytes == 0) return forward(stream);
  const CUdevice device = current_device();
  if (capturing(stream)) {
    return in_capture(scope, "a captured cuMemAllocFromPoolAsync", device, bytes, [&] { return forward(stream); });
  }
  if (!is_plain_pool(pool, device)) return allocate_around(scope, address, bytes, pool, stream, forward);
  return allocate(address, bytes, trace::Origin::pool, stream, pool);
}

CUresult free_async(CUdeviceptr address, CUstream stream) {
  if (const HookScope scope(defragmenting()); scope && !capturing(stream)) {
    return runtime().defragmenter->release_async(address, stream);
  }
  const HookScope scope;
  if (!scope || capturing(stream)) return driver().cuMemFreeAsync(address, stream);
  return release(address, stream, true);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  if (const HookScope scope(defragmenting()); scope) return runtime().defragmenter->allocate(address, bytes);
  const HookScope scope;
  if (!scope || address == nullptr || bytes == 0) return driver().cuMemAlloc(address, bytes);
  if (declared_call() != nullptr && managing()) return allocate_for_library(scope, address, bytes);
  look_who_allocates();
  return allocate(address, bytes, trace::Origin::alloc, CU_STREAM_LEGACY, nullptr);
}

REPRISE_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                           unsigned element_bytes) {
  const HookScope scope;
  const bool plain = address != nullptr && pitch != nullptr && width != 0 && height != 0 &&
                     (element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
  if (scope && plain && managing()) {
    const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (row < width || row > SIZE_MAX / height) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult result = allocate(address, row * height, trace::Origin::pitched, CU_STREAM_LEGACY, nullptr);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  }
  const CUresult result = driver().cuMemAllocPitch(address, pitch, width, height, element_bytes);
  if (scope && result == CUDA_SUCCESS) {
    record_allocated(make_allocate_call(*pitch * height, trace::Origin::pitched, CU_STREAM_LEGACY), *address);
  }
  return result;
}

REPRISE_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  if (const HookScope scope(defragmenting()); scope) return runtime().defragmenter->release(address);
  const HookScope scope;
  return scope ? release(address, CU_STREAM_LEGACY, false) : driver().cuMemFree(address);
}

REPRISE_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_async(address, bytes, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_async(address, bytes, explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                CUstream stream) {
  return allocate_from_pool(address, bytes, pool, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                                     CUstream stream) {
  return allocate_from_pool(address, bytes, pool, explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return free_async(address, explicit_stream(stream, kLegacy));
}
REPRISE_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return free_async(address, explicit_stream(stream, kPerThread));
}

// Which pools are ours to serve.
REPRISE_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const CUresult result = driver().cuMemPoolCreate(pool, properties);
  if (result == CUDA_SUCCESS) insert_pool(*pool, *properties);
  return result;
}

REPRISE_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map, size_t count) {
  const HookScope scope;
  if (scope) {
    if (const CUresult order = before_ordered(RowId::k_cuMemPoolSetAccess); order != CUDA_SUCCESS) return order;
  }
  CUresult result = driver().cuMemPoolSetAccess(pool, map, count);
  CUdevice device = 0;
  if (!scope || !device_of_plain_pool(pool, &device)) return result;
  for (size_t i = 0; result == CUDA_SUCCESS && i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) continue;
    result = runtime().handler->memory.peer_allowed(device, map[i].location.id);
  }
  return result;
}

REPRISE_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const HookScope scope;
  if (scope) {
    if (const CUresult order = before_ordered(RowId::k_cuMemPoolDestroy); order != CUDA_SUCCESS) return order;
  }
  forget_pool(pool);
  return driver().cuMemPoolDestroy(pool);
}

// Managed memory migrates by itself: known, counted, never moved by Reprise.
REPRISE_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  const HookScope scope;
  const BesideCall beside{BesideKind::managed, "cuMemAllocManaged", scope ? current_device() : 0, bytes};
  const CUresult result = beside_ours(scope, beside, [&] { return driver().cuMemAllocManaged(address, bytes, flags); });
  if (scope && result == CUDA_SUCCESS) {
    record_allocated(make_allocate_call(bytes, trace::Origin::managed, CU_STREAM_LEGACY), *address);
  }
  return result;
}

// Physical memory that the program makes and maps itself: its own to place, ours to count.
REPRISE_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                                    const CUmemAllocationProp* properties, unsigned long long flags) {
  const HookScope scope;
  const auto create = [&] { return driver().cuMemCreate(handle, bytes, properties, flags); };
  if (properties == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return create();
  if (scope) look_who_allocates();
  return beside_ours(scope, {BesideKind::physical, "cuMemCreate", properties->location.id, bytes}, create);
}

// The memory goes with the last of its handles and mappings.
REPRISE_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const HookScope scope;
  const auto release = [&] { return driver().cuMemRelease(handle); };
  return scope ? beside_ours(scope, {BesideKind::physical, "cuMemRelease", current_device()}, release) : release();
}

REPRISE_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const HookScope scope;
  if (!scope) return driver().cuMemUnmap(address, bytes);
  if (const CUresult order = before_ordered(RowId::k_cuMemUnmap); order != CUDA_SUCCESS) return order;
  return beside_ours(scope, {BesideKind::physical, "cuMemUnmap", current_device()},
                     [&] { return driver().cuMemUnmap(address, bytes); });
}

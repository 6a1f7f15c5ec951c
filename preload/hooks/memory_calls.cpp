#include "preload/hooks/memory_calls.h"

#include "preload/access/pointees.h"
#include "preload/base/runtime.h"
#include "preload/base/sequence.h"
#include "preload/driver/driver.h"
#include "preload/record/recorder.h"
#include "preload/trace/signature.h"
#include "preload/tracking/pool_use.h"
#include "preload/tracking/streams.h"

namespace reprise {

namespace {

// Of memory that the driver would have taken from a pool. What it makes itself, it counts itself.
uint8_t pool_of(const AllocateCall& call, CUdeviceptr address) {
  const bool from_pool = call.origin == trace::Origin::async || call.origin == trace::Origin::pool;
  if (!from_pool || !runtime().handler->memory.makes(address)) return 0;
  return pool_number(reinterpret_cast<uint64_t>(call.pool));
}

}  // namespace

AllocateCall make_allocate_call(uint64_t size, trace::Origin origin, CUstream stream, CUresult* asked) noexcept {
  AllocateCall call{};
  call.allocation = next_allocation_id();
  call.sequence = next_sequence();
  call.size = size;
  call.origin = origin;
  call.stream = stream;
  call.stream_id = stream_id(stream);
  if (driver().cuCtxGetDevice(&call.device) != CUDA_SUCCESS) call.device = 0;
  const CUresult result = driver().cuCtxGetCurrent(&call.context);
  if (result != CUDA_SUCCESS) call.context = nullptr;
  if (asked != nullptr) *asked = result;
  return call;
}

void record_allocated(const AllocateCall& call, CUdeviceptr address, const Allocation& marks) noexcept {
  Allocation allocation = marks;
  allocation.id = call.allocation;
  allocation.address = address;
  allocation.size = call.size;
  allocation.origin = call.origin;
  allocation.device = static_cast<uint16_t>(call.device);
  allocation.pool = pool_of(call, address);
  insert_allocation(allocation);
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    const uint32_t site = recorder->call_site(trace::allocate_signature(call.origin, call.size));
    recorder->allocated(call.allocation, call, address, call.sequence, site);
  }
}

CUdevice current_device() noexcept {
  CUdevice device = 0;
  return driver().cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : 0;
}

bool take_allocation(CUdeviceptr address, CUstream stream, Allocation* allocation, FreeCall* call) noexcept {
  if (!forget_allocation(address, allocation)) return false;
  *call = FreeCall{};
  call->allocation = allocation->id;
  call->sequence = next_sequence();
  call->address = address;
  call->size = allocation->size;
  call->origin = allocation->origin;
  call->stream = stream;
  call->stream_id = stream_id(stream);
  if (driver().cuCtxGetCurrent(&call->context) != CUDA_SUCCESS) call->context = nullptr;
  return true;
}

void record_freed(const FreeCall& call, const Allocation& allocation, CUresult result) noexcept {
  if (result != CUDA_SUCCESS) {
    insert_allocation(allocation);
    return;
  }
  forget_pointees(allocation);
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) recorder->freed(call, call.sequence);
}

}  // namespace reprise

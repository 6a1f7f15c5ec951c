// Allocations and frees as the hooks see them: entered in the map, recorded. Callers: hooks/memory, hooks/host,
// hooks/module, hooks/descriptor.
#pragma once
#include "preload/base/guard.h"
#include "preload/base/runtime.h"
#include "preload/calls/command.h"
#include "preload/calls/handler.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// A new AllocateCall with id, sequence, device and context of the calling thread.
// *asked: what the driver said when it was asked for the context.
AllocateCall make_allocate_call(uint64_t size, trace::Origin origin, CUstream stream,
                                CUresult* asked = nullptr) noexcept;

// The allocation exists at `address`: into the map and the trace. `marks` gives its marks only.
void record_allocated(const AllocateCall& call, CUdeviceptr address, const Allocation& marks = {}) noexcept;

// Takes what starts at `address` out of the map. false: nothing known starts there. *call is complete but for
// stream_ordered. To be called before the driver frees: afterwards another thread may get the same address.
bool take_allocation(CUdeviceptr address, CUstream stream, Allocation* allocation, FreeCall* call) noexcept;

// The driver's answer to the free: on success it is recorded, on an error the allocation goes back into the map.
void record_freed(const FreeCall& call, const Allocation& allocation, CUresult result) noexcept;

CUdevice current_device() noexcept;

// The answer of `call()`, by which the driver makes device memory that Reprise does not manage, or takes some back: it
// counts, and ours makes room for it. Where the driver has none left because ours takes it all, it is asked again after
// some of ours was given back.
template <typename Call>
CUresult beside_ours(const HookScope& scope, BesideCall beside, Call call) noexcept {
  Handler* const handler = runtime().handler;
  if (!scope || handler == nullptr) return call();
  if (const CUresult refused = handler->memory.before_beside(&beside); refused != CUDA_SUCCESS) return refused;
  CUresult result = call();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && beside.bytes != 0 && managing() &&
      handler->memory.make_headroom(beside.bytes)) {
    result = call();
  }
  handler->memory.after_beside(beside, result);
  return result;
}

// The answer of `call()`, by which the driver may take device memory for itself.
template <typename Call>
CUresult taking(Call call) noexcept {
  if (watch_flags() == 0) return call();
  const MemoryHandler::BeforeTaking before = runtime().handler->memory.before_taking();
  const CUresult result = call();
  runtime().handler->memory.after_taking(before);
  return result;
}

// The same for a call that takes memory of the driver's own, of a size that only the driver knows.
template <typename Call>
CUresult with_memory_of_the_driver(Call call) noexcept {
  CUresult result = taking(call);
  if (result != CUDA_ERROR_OUT_OF_MEMORY) return result;
  const HookScope scope;
  if (!scope || !managing()) return result;
  for (int refusal = 0; result == CUDA_ERROR_OUT_OF_MEMORY; ++refusal) {
    if (!runtime().handler->memory.make_more_headroom(refusal)) break;
    result = taking(call);
  }
  return result;
}

}  // namespace reprise

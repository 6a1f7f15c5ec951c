// Allocations and frees as the hooks see them: entered in the map, recorded. Callers: hooks/memory, hooks/host,
// hooks/module.
#pragma once
#include "preload/calls/command.h"
#include "preload/tracking/allocations.h"

namespace reprise {

// A new AllocateCall with id, sequence, device and context of the calling thread.
AllocateCall make_allocate_call(uint64_t size, trace::Origin origin, CUstream stream) noexcept;

// The allocation exists at `address`: into the map and the trace. `marks` gives its marks only.
void record_allocated(const AllocateCall& call, CUdeviceptr address, const Allocation& marks = {}) noexcept;

// Takes what starts at `address` out of the map. false: nothing known starts there. *call is complete but for
// stream_ordered. To be called before the driver frees: afterwards another thread may get the same address.
bool take_allocation(CUdeviceptr address, CUstream stream, Allocation* allocation, FreeCall* call) noexcept;

// The driver's answer to the free: on success it is recorded, on an error the allocation goes back into the map.
void record_freed(const FreeCall& call, const Allocation& allocation, CUresult result) noexcept;

}  // namespace reprise

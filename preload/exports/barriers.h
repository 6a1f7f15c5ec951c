// What happens before a call that is forwarded but not understood. Callers: the thunks' slow path, hooks that forward.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "preload/exports/rows.h"

namespace reprise {

// For a row of class ordered, opaque or graph_update: the handler brings everything in order, and makes resident what
// the row says; an opaque call is recorded as work whose accesses are not known. `*stream`: that the call works on;
// where the handler has another one for it, the call is to get that. `first_argument` is the call's, as bits. An error:
// the driver must not get the call, the program gets this.
CUresult before_barrier(const Row& row, CUstream* stream, uint64_t first_argument) noexcept;

// The same for a hook that forwards a call: the handler alone.
CUresult before_ordered(RowId id) noexcept;

}  // namespace reprise

// What happens before a call that is forwarded but not understood. Callers: the thunks' slow path, hooks that forward.
#pragma once
#include <cstdint>

#include "preload/exports/rows.h"

namespace reprise {

// For a row of class ordered, opaque or graph_update: the handler brings everything in order; an opaque call is
// recorded as work whose accesses are not known. `first_argument` is the call's, as bits.
void before_barrier(const Row& row, uint64_t first_argument) noexcept;

// The same for a hook that forwards a call: the handler alone.
void before_ordered(const char* name) noexcept;

}  // namespace reprise

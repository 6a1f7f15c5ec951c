// Page-locked host memory: allocated here, or registered by the program. host_api.cpp defines it. Caller besides:
// memory.cpp, for contexts that end.
#pragma once
#include "tools/sim/memory/memory.h"

namespace reprise::sim {

CUresult allocate_host_memory(Context& context, uint64_t bytes, unsigned flags, void** address);
// Frees what allocate_host_memory() gave, or ends a registration.
void free_host_memory(const Range& range);

}  // namespace reprise::sim

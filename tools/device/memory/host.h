// Page-locked host memory: allocated here, or registered by the program. host_api.cpp defines it. Caller besides:
// pool.cpp, and memory.cpp for contexts that
// end.
#pragma once
#include "tools/device/memory/memory.h"

namespace reprise::sim {

CUresult allocate_host_memory(Context& context, uint64_t bytes, unsigned flags, void** address);
// Of a pool whose memory is on the host.
CUresult allocate_pool_host_memory(Context& context, uint64_t bytes, std::shared_ptr<Pool> pool, CUdeviceptr* address);
// Frees what these gave, or ends a registration.
void free_host_memory(const Range& range);

}  // namespace reprise::sim

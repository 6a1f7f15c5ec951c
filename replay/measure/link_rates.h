// How fast bytes move between the device and pinned host memory, and digests are computed: measured once, with one
// chunk, for the planner. Slow links are measured with fewer bytes. Caller: the dispatcher while it sets up, when
// something is recorded.
#pragma once
#include <cuda.h>

#include <cstdint>

#include "replay/memory/memory.h"

namespace reprise::replay {

// Zero: not measured.
struct LinkRates {
#define REPRISE_MEASURED(field, ...) uint64_t field = 0;
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
};

// Takes one chunk from the pool for the time being, and a host slot. The median of three tries each, by the device's
// events: a host that is busy does not make the link slow.
LinkRates measure_link_rates(ManagedMemory& memory) noexcept;

}  // namespace reprise::replay

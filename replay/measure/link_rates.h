// How fast the link, digests and mapping are, as the replay has them: for the planner. Caller: the dispatcher while it
// sets up, when something is recorded.
#pragma once
#include "preload/measure/link.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

// Takes one chunk from the pool for the time being, and a host slot.
LinkRates measure_link_rates(ManagedMemory& memory) noexcept;

}  // namespace reprise::replay

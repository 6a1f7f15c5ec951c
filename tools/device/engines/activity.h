// Activity records of the simulated device (preload/driver/sim_abi.h). Callers: streams take the id, engines record;
// repriseSimActivityRead() hands records to the shim and to tests.
#pragma once
#include <atomic>

#include "preload/driver/sim_abi.h"

namespace reprise::sim {

extern std::atomic<bool> activity_enabled;
void store_activity(const RepriseSimActivity& record);

inline void record_activity(const RepriseSimActivity& record) {
  if (activity_enabled.load(std::memory_order_relaxed)) store_activity(record);
}

// The id that the calling thread pushed last, 0 without one.
uint64_t current_activity() noexcept;

// The position in the program's order of calls of what the calling thread asks for: as the shim tells, else one more
// than any before.
uint64_t current_call() noexcept;

}  // namespace reprise::sim

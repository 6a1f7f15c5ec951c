// Where the copies of what left the device are kept: in host memory, or on the SSD where the host has no room. Called
// by the planner for every schedule; a policy may have chosen before.
#pragma once
#include <cstdint>

#include "analyzer/machine/machine.h"
#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

struct TierUse {
  bool fits = true;              // false: host and SSD together are too small
  uint64_t host_peak_bytes = 0;  // of copies, in the serial order
  uint64_t ssd_peak_bytes = 0;
  uint64_t ssd_written_bytes = 0;  // per iteration
  uint64_t ssd_read_bytes = 0;
};

// Sets Stay::to and Stay::from. Copies stay where the schedule wants them as long as the host has room. Where it has
// none, those go to the SSD that find it idle and are away for long, and if that is not enough, those that are away
// longest. A copy is kept until its last reload.
TierUse assign_tiers(const TaskGraph& graph, const Machine& machine, Schedule& schedule);

}  // namespace reprise::analyzer

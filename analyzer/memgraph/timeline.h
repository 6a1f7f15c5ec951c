// What a schedule could look like in time: a simulation in which memory is a number of chunks, not particular ones, so
// that a copy starts as soon as link and room allow. Its times become the schedule's: a stay lasts until its copy is
// out, and the next one begins when its copy starts. Called by policies and the planner, which then place and build.
#pragma once
#include <cstdint>

#include "analyzer/machine/machine.h"
#include "analyzer/memgraph/schedule.h"

namespace reprise::analyzer {

struct Timeline {
  Schedule schedule;          // as given, with the beginnings and ends of stays moved
  uint64_t iteration_ns = 0;  // in the steady state, kernels in the recorded order
};

// `schedule` lists every stay from its first use to behind its last one and keeps to `capacity` chunks; so does the
// result.
Timeline retime(const TaskGraph& graph, const Machine& machine, const Schedule& schedule, uint64_t capacity);

}  // namespace reprise::analyzer

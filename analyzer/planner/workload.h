// What the planner makes of a graph before it plans: the parts of a Workload that follow from graph and machine, and
// how many chunks a budget leaves. Called by the planner and its variants.
#pragma once
#include <cstdint>

#include "analyzer/planner/planner.h"

namespace reprise::analyzer {

// Fills everything that follows from the workload's graph and machine. `held_bytes`: held around Reprise.
void complete_workload(Workload& workload, uint64_t held_bytes, const PlanOptions& options);

// Workload::alone_ns of this graph with these durations.
uint64_t computing_alone(const TaskGraph& graph, const Machine& machine);

// The budget must not be below the workload's minimum.
uint64_t chunks_that_fit(const Workload& workload, uint64_t budget);
// Likewise, but no more than there are tensors to fill them.
uint64_t useful_chunks(const Workload& workload, uint64_t budget);

}  // namespace reprise::analyzer

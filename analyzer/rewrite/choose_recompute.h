// Which ops to recompute for a budget: those that free most bytes per second of computing first, as many as make the
// iteration fastest when it is retimed. Called by the planner.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// Calls, ascending; for with_recompute(). Empty when offload alone is as fast. `capacity`: chunks. `rewrite`, if there
// is one, is what the graph goes through afterwards. `guarded`: as for with_recompute().
std::vector<uint32_t> choose_recompute(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
                                       const std::function<TaskGraph(const TaskGraph&)>& rewrite = {},
                                       const Machine* guarded = nullptr);

}  // namespace reprise::analyzer

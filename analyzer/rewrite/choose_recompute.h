// Which ops to recompute for a budget: those that free most bytes per second of computing first, as many as make the
// iteration fastest when it is retimed. Called by the planner.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// Sets of calls, each ascending, for with_recompute(): the fastest first, and of a small graph a few that are nearly as
// fast, for places in chunks are not looked at here. None when offload alone is faster than all. `capacity`: chunks.
// `rewrite`, if there is one, is what the graph goes through afterwards. `guarded`: as for with_recompute().
std::vector<std::vector<uint32_t>> choose_recompute(const TaskGraph& graph, const Machine& machine, uint64_t capacity,
                                                    const std::function<TaskGraph(const TaskGraph&)>& rewrite = {},
                                                    const Machine* guarded = nullptr);

}  // namespace reprise::analyzer

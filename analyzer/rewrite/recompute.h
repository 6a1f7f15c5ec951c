// A TaskGraph in which chosen ops are recomputed: their outputs are freed after their last use before that, and
// allocated anew. The result is a graph like any other. Called by the planner's variants and choose_recompute.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// `calls`: calls of candidates (recompute_candidates.h), ascending. Ops that they need are added. An op that two others
// need again is recomputed once, before the first of them.
TaskGraph with_recompute(const TaskGraph& graph, const std::vector<uint32_t>& calls);

}  // namespace reprise::analyzer

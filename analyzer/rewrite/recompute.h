// A TaskGraph in which chosen ops run again: their outputs are freed after their last use before that, and allocated
// anew. The result is a graph like any other. Called by the policies that recompute.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// `calls`: calls of candidates (candidates.h), ascending. Ops that they need are added. What is launched again just
// before somebody else needs it is launched once, for both.
TaskGraph with_relaunches(const TaskGraph& graph, const std::vector<uint32_t>& calls);

}  // namespace reprise::analyzer

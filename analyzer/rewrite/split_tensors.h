// A TaskGraph in which large tensors stand as several, their parts: a plan may then move a part of a tensor and leave
// the rest where it is. The result is a graph like any other. Called by the planner's variants.
#pragma once
#include <cstdint>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// Parts have at most `most_chunks` chunks, as many as the other parts of the tensor (the last one may have fewer). Ops
// access all parts that their accesses meet; the program's allocation and free stand for the first part, inserted ones
// behind them for the others. Left whole: what is small, what takes over from the iteration before, and tensors that
// would bring the accesses that are added above `most_accesses`, where larger tensors go first. The graph itself where
// nothing is split; so for several devices.
TaskGraph with_parts(const TaskGraph& graph, uint64_t most_chunks, uint64_t most_accesses);

}  // namespace reprise::analyzer

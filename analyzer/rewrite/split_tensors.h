// A TaskGraph in which large tensors are split and stand as several, their parts: a plan may then move a part and leave
// the rest where it is. The result is a graph like any other. Called by the planner's variants.
#pragma once
#include <cstdint>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// Parts have at most `most_chunks` chunks, as many as the other parts of the tensor (the last one may have fewer). Ops
// access all parts that their accesses meet; the program's allocation and free stand for the first part, inserted ones
// behind them for the others. Left whole: small tensors, those that are handed over between iterations, and those
// that would bring the accesses that are added above `most_accesses`, where larger tensors go first. The graph itself
// where nothing is split; so for several devices.
TaskGraph with_split_tensors(const TaskGraph& graph, uint64_t most_chunks, uint64_t most_accesses);

}  // namespace reprise::analyzer

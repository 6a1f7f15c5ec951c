// A TaskGraph in which updates of persistent tensors run as early as what they read allows: an optimizer's kernels
// right behind the gradients that they consume, instead of all of them at the iteration's end. Every conflict keeps its
// order, so the results are the same bits; gradients no longer wait in memory. Called by the
// planner's variants.
#pragma once
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// What moves: launches that write persistent tensors alone and use a chunked transient tensor last, and the frees of
// such tensors. Nothing moves over a barrier, nor over a place up to which the program waits for the device, so that no
// call waits for one that the program makes only when that call is complete. The result's `reordered_from` says where
// each call stood; it is empty when nothing moved. One device.
TaskGraph with_reordered_updates(const TaskGraph& graph);

}  // namespace reprise::analyzer

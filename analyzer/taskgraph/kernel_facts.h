// What is known of a trace's kernels (preload/facts), applied to the accesses of their launches. Called by build.cpp,
// for a graph whose tensors and calls are set, but for its edges.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"
#include "preload/facts/store.h"
#include "preload/trace/reader.h"

namespace reprise::analyzer {

// The op of each call, nullptr for others than ops. Directions and purity only follow
// where nothing is given up that a wrong fact could not bring back:
//   - an operand that is not written still counts as written for the order of ops, but as unchanged;
//   - what is overwritten is no input where the launch is the first to touch a tensor in its life;
//   - a launch with another resource than tensors stays as it is.
void apply_facts(const trace::Trace& trace, const facts::Store& store, const std::vector<const trace::Op*>& ops,
                 TaskGraph& graph);

// Marks the launches whose kernels an audit has seen, in the very shape, to touch nothing but their operands; not those
// that touch other resources than tensors, or what tables lead to.
void mark_audited(const trace::Trace& trace, const facts::Store& store, const std::vector<const trace::Op*>& ops,
                  TaskGraph& graph);

}  // namespace reprise::analyzer

// What is known of a trace's kernels, applied to the accesses of their launches. Called by build.cpp, for a graph whose
// tensors and calls are set, but for its edges.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"
#include "analyzer/taskgraph/kernel_knowledge.h"

namespace reprise::analyzer {

// The op of each call, nullptr for others than ops. Directions and purity only follow where nothing is given up that a
// wrong fact could not bring back:
//   - an operand that is not written still counts as written for the order of ops, but as unchanged;
//   - what is overwritten is no input where the launch is the first to touch a tensor in its life;
//   - a launch with another resource than tensors stays as it is.
// What a launch's code proves goes further where `order_by_proof`: what it does not write, it only reads.
void apply_facts(KernelKnowledge& knowledge, const std::vector<const trace::Op*>& ops, bool order_by_proof,
                 TaskGraph& graph);

// Marks the launches that touch nothing but their operands (plan::Call::audited): their code proves it or, with audited
// safety, an audit has seen it of their kernel in the very shape.
void mark_complete(KernelKnowledge& knowledge, const std::vector<const trace::Op*>& ops, plan::Safety safety,
                   TaskGraph& graph);

}  // namespace reprise::analyzer

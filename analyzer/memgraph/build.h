// From TaskGraph, schedule and layout to the MemGraph: vertices in a serial order that is a valid execution, with data
// edges (transfers spliced in) and memory edges. Called by the planner; the result becomes the plan.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/placement/layout.h"
#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

// Vertex numbers are places in the serial order: every edge of distance 0 points forward.
struct MemGraph {
  std::vector<plan::Vertex> vertices;    // as they will stand in the plan, but for the times
  std::vector<Tier> tiers;               // vertex -> the other end of a transfer
  std::vector<uint64_t> extra_ns;        // vertex -> Stay::fault_ns of a transfer
  std::vector<uint32_t> vertex_of_call;  // kNone for allocations
};

// Every stay must have a placement.
MemGraph build_mem_graph(const TaskGraph& graph, const Schedule& schedule, const Layout& layout);

// Predecessors of all vertices in one array; those of a vertex stand from first to last.
struct EdgeList {
  std::vector<plan::Predecessor> edges;
  std::vector<uint32_t> first;
  std::vector<uint32_t> last;
};

// Drops predecessors that others imply, looking back at most a few hundred vertices each. Called by build_mem_graph().
void reduce_edges(EdgeList& list);

}  // namespace reprise::analyzer

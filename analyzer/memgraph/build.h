// From TaskGraph, schedule and layout to the MemGraph: vertices in a serial order that is a valid execution, with data
// edges (transfers spliced in) and memory edges. Called by the planner; the result becomes the plan.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/memgraph/schedule.h"
#include "analyzer/placement/layout.h"

namespace reprise::analyzer {

struct MemVertex {
  plan::Vertex vertex;     // as it will stand in the plan
  uint32_t position = 0;   // call index: of the call, or before which a transfer stands
  Tier tier = Tier::host;  // the other end of a transfer
  uint64_t extra_ns = 0;   // of a transfer: Stay::fault_ns
};

// Vertex numbers are places in the serial order: every edge of distance 0 points forward.
struct MemGraph {
  std::vector<MemVertex> vertices;
  std::vector<uint32_t> vertex_of_call;  // kNone for allocations
};

// Every stay must have a placement.
MemGraph build_mem_graph(const TaskGraph& graph, const Schedule& schedule, const Layout& layout);

// Drops predecessors that others imply, looking back at most a few hundred vertices each. Called by build_mem_graph().
void reduce_edges(MemGraph& graph);

}  // namespace reprise::analyzer

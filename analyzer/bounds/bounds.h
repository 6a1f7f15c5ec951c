// What no plan can beat: smallest budget, compute time, bytes over each link. Callers: planner (the smallest budget),
// reports (printed beside every prediction).
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/machine/machine.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// LB0: the largest working set of one op.
struct WorkingSet {
  uint64_t chunks = 0;
  CallIndex call{kNone};  // that op; kNone when no op uses a chunked tensor
};
WorkingSet largest_working_set(const TaskGraph& graph);

// The part of a budget that does not hold chunked tensors: chunks of small ones and what the program holds around
// Reprise. Where the graph does not say how small persistent tensors lie, one chunk in 64 is slack.
uint64_t reserved_bytes(const TaskGraph& graph, uint64_t slab_bytes, uint64_t held_bytes);

struct Bounds {
  uint64_t compute_ns = 0;     // LB1: of the ops that compute
  uint64_t reload_bytes = 0;   // LB2: what has to come in per iteration
  uint64_t offload_bytes = 0;  // LB2: what has to go out
  uint64_t reload_ns = 0;      // at the link's rate, without latencies
  uint64_t offload_ns = 0;
  uint64_t window_ns = 0;     // LB3: what a stretch of ops has to move while it runs
  uint64_t chain_ns = 0;      // LB5: copies between ops that do not fit together
  uint64_t iteration_ns = 0;  // the largest of them
  const char* binding = "";   // which one that is, in words
};
// `capacity`: chunks; at least the largest working set. Reloads: furthest-next-use eviction of single chunks, optimal
// for a fixed order and chunks of one cost (Belady), in its cheapest of several iterations. Offloads: what this
// iteration wrote, is alive and does not fit, where that is most.
Bounds bounds_of(const TaskGraph& graph, uint64_t capacity, const Machine& machine);

// windows.cpp and chains.cpp say why these hold.
uint64_t window_bound(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine);
uint64_t chain_bound(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine);

}  // namespace reprise::analyzer

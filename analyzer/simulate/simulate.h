// Predicts how long an iteration takes under a plan: a discrete event simulation of one compute engine, one copy engine
// per direction and an SSD behind the same link (engines.h), with the dispatcher's rules (work-conserving by priority,
// a bounded window of ops, transfers at any time). No noise, so that the same plan gives the same answer. Callers: the
// planner, reports.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/memgraph/build.h"

namespace reprise::analyzer {

struct Prediction {
  uint64_t iteration_ns = 0;      // in the steady state
  std::vector<int64_t> start_ns;  // vertex -> from the iteration's start; early reloads are negative
  std::vector<int64_t> end_ns;
};

struct SimulationOptions {
  uint32_t window = 64;  // ops that the dispatcher looks ahead
  uint64_t granularity = 2 << 20;
};

// The priority of a vertex is its number in `graph`.
Prediction simulate(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine,
                    const SimulationOptions& options);

// Vertices by predicted start, frees behind the ops that use their tensors: a topological order of the edges of
// distance 0.
std::vector<uint32_t> order_of(const TaskGraph& tasks, const MemGraph& graph, const Prediction& prediction);

}  // namespace reprise::analyzer

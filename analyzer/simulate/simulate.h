// Predicts how long an iteration takes under a plan: a discrete event simulation of the engines of every device
// (engines.h) with the dispatcher's rules (work-conserving by priority, a bounded window of ops, transfers at any
// time), or with every engine's order fixed beforehand. The same input gives the same answer, with noise, too. Callers:
// the planner, reports.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/memgraph/build.h"
#include "analyzer/simulate/noise.h"

namespace reprise::analyzer {

// A vertex that began when another one ended: one that it waits for, or what its engine did before.
struct CriticalStep {
  uint32_t vertex = 0;
  uint32_t before = 0;
  bool operator==(const CriticalStep&) const = default;
};

struct Prediction {
  uint64_t iteration_ns = 0;      // in the steady state
  std::vector<int64_t> start_ns;  // vertex -> from the iteration's start; early reloads are negative
  std::vector<int64_t> end_ns;
  // From the end of the iteration back to its start, each one because of the next: what makes it as long as it is. Only
  // where it was asked for.
  std::vector<CriticalStep> critical_path = {};
};

// Which vertex comes next on an engine: any that is ready, by priority; or the next one of a fixed order, ready or not.
// Fixed are the kernels of each device in the order of the program; or each engine's work in the plan's serial order;
// or that in the order in which it happens without noise when any vertex that is ready goes.
enum class Dispatch : uint8_t { free, fixed_kernels, fixed_plan, fixed_best };

struct SimulationOptions {
  uint32_t window = 64;  // ops that each device's dispatcher looks ahead
  Dispatch dispatch = Dispatch::free;
  NoiseOptions noise = {};
  // Iterations that are simulated. The first two fill the pipeline, the last one only follows what is reported: the
  // last but one, and the mean time from the second to that one.
  uint32_t rounds = 5;
  bool critical_path = false;
};

// The priority of a vertex is its number in `graph`.
Prediction simulate(const TaskGraph& tasks, const MemGraph& graph, const Machine& machine,
                    const SimulationOptions& options);

// Vertices by predicted start, frees behind the ops that use their tensors: a topological order of the edges of
// distance 0.
std::vector<uint32_t> order_of(const TaskGraph& tasks, const MemGraph& graph, const Prediction& prediction);

}  // namespace reprise::analyzer

// The fluid bound (LB4, decision 0011): a linear program in which bytes leave and come back as a liquid, kernels run
// in the recorded order, and what must be away at each time is tied to what the links can have carried by then. No
// plan for this order of kernels is faster; its flows show a policy what such a plan looks like. Callers: the
// planner, for reports, and the policy `fluid`.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/bounds/periods.h"
#include "analyzer/machine/machine.h"
#include "analyzer/taskgraph/recompute_candidates.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

struct FluidOptions {
  uint32_t segments = 48;     // of the iteration at most; memory is looked at during the fullest op of each
  double seconds = 30;        // of CPU time
  double cost_of_moving = 0;  // milliseconds a GiB, as if copies kept kernels waiting: for a schedule, not for a bound
  bool guarded = false;       // what is recomputed is compared with what was dropped (decision 0031)
};

// What one period of some versions carries, which all leave and return between the same points. Amounts are bytes, by
// point from `first` on: point 2i is the start of the fullest op of segment i, 2i + 1 its end; points of the next
// iteration go on counting.
struct FluidFlow {
  struct Member {
    uint32_t version = 0;  // index into Vitality::versions
    uint32_t period = 0;   // of that version
  };
  std::vector<Member> members;
  uint64_t bytes = 0;  // of all members
  uint32_t first = 0;
  std::vector<double> away;
  std::vector<double> away_on_ssd;  // of them; empty without an SSD
};

struct Fluid {
  uint64_t iteration_ns = 0;
  std::vector<OpIndex> fullest;  // by segment: op with the most bytes alive
  std::vector<double> stall_ns;  // before that op
  Vitality vitality;
  std::vector<FluidFlow> flows;
  std::vector<double> recompute;  // by candidate: the part of it that is recomputed, 0 to 1
};

// `capacity_bytes`: for chunked tensors. `candidates`: ops that may be recomputed, by call, where recompute_places.h
// says, with the ops that they need again; what is read then is there. Errors: unsupported (no solver, too long),
// infeasible.
Result<Fluid> solve_fluid(const TaskGraph& graph, uint64_t capacity_bytes, const Machine& machine,
                          const FluidOptions& options, const std::vector<RecomputeCandidate>& candidates = {});

}  // namespace reprise::analyzer

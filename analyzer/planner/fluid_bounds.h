// The fluid bounds (LB4) of one budget of a workload, for `reprise simulate` and `reprise plan --explain`. They take
// seconds on large graphs, so they are asked for apart from the plan.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/bounds/fluid.h"
#include "analyzer/planner/planner.h"

namespace reprise::analyzer {

// Both for kernels in the recorded order: a plan that reorders kernels may be faster.
struct FluidBounds {
  uint64_t offload_ns = 0;  // no plan without recompute is faster; 0: not known
  uint64_t joint_ns = 0;    // nor one that recomputes each op at most once; 0: not known, or no op may be recomputed
  std::string trouble;      // why one is not known; empty: nothing went wrong
};

// `budget_bytes`: at least the workload's minimum. Graphs for several devices have none.
FluidBounds fluid_bounds(const Workload& workload, uint64_t budget_bytes, bool recompute, const FluidOptions& options);

// Whether a plan for one budget could have these bounds at all, before any is computed.
bool has_fluid_bound(const Workload& workload);
bool has_joint_bound(const Workload& workload, bool recompute);

// A line for the command line, under that of the plan.
std::string explain(const plan::Plan& plan, const FluidBounds& bounds);

}  // namespace reprise::analyzer

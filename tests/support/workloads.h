// Machines, workloads and plans of small imaginary programs: the lines that the tests of policies, variants and
// simulations would otherwise all have. Used by the analyzer's unit tests.
#pragma once

#include "analyzer/planner/planner.h"
#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

namespace reprise::analyzer::testing {

inline constexpr uint64_t kMs = 1'000'000;

inline Machine with_link(double bytes_per_s) {
  Machine machine;
  machine.h2d_bytes_per_s = machine.d2h_bytes_per_s = bytes_per_s;
  return machine;
}

// A link that takes 1 ms for a chunk, either way.
inline Machine slow_link() {
  Machine machine = with_link(static_cast<double>(kChunk) * 1000);
  machine.latency_ns = 0;
  return machine;
}

// The last iteration of what has been recorded; an SSD may be used where the machine has one.
inline Workload workload_on(const Machine& machine, const TraceBuilder& program) {
  PlanOptions options;
  options.machine = machine;
  options.ssd = true;
  Result<Workload> workload = Planning(program.trace(), options).workload();
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  return std::move(workload.value());
}

// A plan must exist.
inline plan::Plan plan_with(const Workload& workload, const PlanOptions& options, PlanSummary* summary = nullptr) {
  Result<plan::Plan> plan = make_plan(workload, options, summary);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return std::move(plan.value());
}

}  // namespace reprise::analyzer::testing

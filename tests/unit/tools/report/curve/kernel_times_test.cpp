#include "tools/report/curve/kernel_times.h"

#include "analyzer/planner/to_plan.h"
#include "tests/support/graph_builder.h"
#include "tests/support/workloads.h"
#include "tools/report/curve/budget_curve.h"

namespace reprise::report {
namespace {

// That was measured.
RunLog whole_iteration() {
  RunLog log;
  log.iterations.emplace_back();
  log.iterations.back().index = 7;
  log.iterations.back().planned = true;
  return log;
}

// Three kernels of 100 us, as the recording has them; the plan was made when they took 200 us.
struct Iteration {
  Iteration() {
    analyzer::testing::GraphBuilder build(1);
    const uint32_t weight = build.persistent(0);
    for (const char* name : {"a", "b", "c"}) build.kernel(0, name, {weight}, {weight}, 100'000);
    analyzer::PlanOptions options;
    options.machine = analyzer::testing::slow_link();
    workload = std::move(analyzer::make_workload(build.build(), options).value());
    options.policy = "lru";
    options.budget_bytes = workload.peak_bytes;
    plan = std::move(analyzer::make_plan(workload, options).value());
    std::vector<uint64_t> ns;
    for (const plan::Call& call : plan.calls) ns.push_back(2 * call.duration_ns);
    plan = *analyzer::retimed(workload, plan, ns);
  }
  // Each kernel took 300 us in iteration 7.
  RunLog run() const {
    RunLog log = whole_iteration();
    for (uint32_t i = 0; i < plan.vertices.size(); ++i) {
      if (plan.vertices[i].kind == plan::VertexKind::op) log.activities.push_back({7, i, "compute", 1000, 301'000});
    }
    return log;
  }
  analyzer::Workload workload;
  plan::Plan plan;
};

TEST(KernelTimes, ThePlansTimesHoldWhereTheRunHasNone) {
  const Iteration one;
  const KernelTimes times = kernel_times(one.workload, &one.plan, nullptr);
  EXPECT_EQ(times.recorded.graph.compute_ns, 600'000u);
  EXPECT_FALSE(times.has_own);
  EXPECT_EQ(budget_curve(times.recorded, plan::Safety::trusted, 60'000).compute_ns, one.plan.compute_ns);
  const RunLog nothing;
  EXPECT_FALSE(kernel_times(one.workload, &one.plan, &nothing).has_own);
  EXPECT_EQ(kernel_times(one.workload, nullptr, nullptr).recorded.graph.compute_ns, 300'000u);
}

TEST(KernelTimes, TheRunsOwnTimesAreForAllThatIsPredictedAnew) {
  const Iteration one;
  const RunLog log = one.run();
  const KernelTimes times = kernel_times(one.workload, &one.plan, &log);
  ASSERT_TRUE(times.has_own);
  EXPECT_EQ(times.own.graph.compute_ns, 900'000u);
  for (const analyzer::GraphCall& entry : times.own.graph.calls) {
    EXPECT_EQ(entry.call.duration_ns, entry.call.kind == plan::CallKind::op ? 300'000u : 0u);
  }
  EXPECT_EQ(times.recorded.graph.compute_ns, 600'000u);
  EXPECT_EQ(whose_times(log), "of iteration 7 of this run");
}

TEST(KernelTimes, APlanOfAnotherLoopSaysNothing) {
  Iteration one;
  one.plan.iteration_hash ^= 1;
  const RunLog log = one.run();
  const KernelTimes times = kernel_times(one.workload, &one.plan, &log);
  EXPECT_FALSE(times.has_own);
  EXPECT_EQ(times.recorded.graph.compute_ns, 300'000u);
}

// Two activations go and come back; a link that takes a millisecond for a chunk.
analyzer::Workload training(uint64_t kernel_ns) {
  analyzer::testing::GraphBuilder build(1);
  const uint32_t weight = build.persistent(0);
  std::vector<uint32_t> activations;
  for (int i = 0; i < 8; ++i) activations.push_back(build.transient(0, 2));
  for (const uint32_t one : activations) build.kernel(0, "forward", {weight}, {one}, kernel_ns);
  for (size_t i = activations.size(); i-- > 0;) build.kernel(0, "backward", {activations[i]}, {weight}, kernel_ns);
  analyzer::PlanOptions options;
  options.machine = analyzer::testing::slow_link();
  return std::move(analyzer::make_workload(build.build(), options).value());
}

plan::Plan half_of(const analyzer::Workload& workload) {
  analyzer::PlanOptions options;
  options.policy = "reprise";
  options.budget_bytes = workload.peak_bytes / 2;
  return std::move(analyzer::make_plan(workload, options).value());
}

// Slower kernels hide more of what is copied: no sum of what the plan was made with and a difference says that.
TEST(KernelTimes, WhatThePlanPredictsWithOtherTimesIsSimulated) {
  const analyzer::Workload workload = training(500'000);
  const plan::Plan plan = half_of(workload);
  ASSERT_GT(plan.predicted_ns, plan.compute_ns);
  RunLog log = whole_iteration();
  for (uint32_t i = 0; i < plan.vertices.size(); ++i) {
    if (plan.vertices[i].kind == plan::VertexKind::op) log.activities.push_back({7, i, "compute", 0, 2'000'000});
  }
  const KernelTimes times = kernel_times(workload, &plan, &log);
  ASSERT_TRUE(times.plan);
  EXPECT_EQ(times.plan->compute_ns, 32'000'000u);
  EXPECT_GE(times.plan->predicted_ns, times.plan->compute_ns);
  EXPECT_LT(times.plan->predicted_ns, times.plan->compute_ns + (plan.predicted_ns - plan.compute_ns));
  uint64_t last_ns = 0;
  for (const plan::Vertex& one : times.plan->vertices) {
    if (one.kind == plan::VertexKind::op) last_ns = std::max(last_ns, one.predicted_end_ns);
  }
  EXPECT_EQ(last_ns, times.plan->predicted_ns) << "the charts show the same iteration";
  const BudgetCurve curve = budget_curve(times.own, plan::Safety::trusted, 60'000, &*times.plan);
  EXPECT_LE(time_at(curve, plan.budget_bytes), times.plan->predicted_ns);
}

TEST(KernelTimes, WithItsOwnTimesAPlanPredictsWhatItDid) {
  const analyzer::Workload workload = training(500'000);
  const plan::Plan plan = half_of(workload);
  std::vector<uint64_t> ns;
  for (const plan::Call& call : plan.calls) ns.push_back(call.duration_ns);
  const std::optional<plan::Plan> again = analyzer::retimed(workload, plan, ns);
  ASSERT_TRUE(again);
  EXPECT_EQ(plan::to_text(*again), plan::to_text(plan));
  analyzer::Workload elsewhere = workload;
  elsewhere.machine.d2h_bytes_per_s *= 2;
  EXPECT_FALSE(analyzer::retimed(elsewhere, plan, ns)) << "it was made for another machine";
}

}  // namespace
}  // namespace reprise::report

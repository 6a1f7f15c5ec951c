#include "tools/report/curve/kernel_times.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"
#include "tests/support/workloads.h"
#include "tools/report/curve/budget_curve.h"

namespace reprise::report {
namespace {

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
    plan.compute_ns *= 2;
    for (plan::Call& call : plan.calls) call.duration_ns *= 2;
  }
  // Each kernel took 300 us in iteration 7.
  RunLog run() const {
    RunLog log;
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
  EXPECT_EQ(times.whose, "");
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
  EXPECT_EQ(times.whose, "of iteration 7 of this run");
}

TEST(KernelTimes, APlanOfAnotherLoopSaysNothing) {
  Iteration one;
  one.plan.iteration_hash ^= 1;
  const RunLog log = one.run();
  const KernelTimes times = kernel_times(one.workload, &one.plan, &log);
  EXPECT_FALSE(times.has_own);
  EXPECT_EQ(times.recorded.graph.compute_ns, 300'000u);
}

}  // namespace
}  // namespace reprise::report

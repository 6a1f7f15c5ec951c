#include "tools/report/curve/budget_curve.h"

#include <gtest/gtest.h>

#include "tests/support/graph_builder.h"
#include "tests/support/workloads.h"

namespace reprise::report {
namespace {

// Forward and backward over `layers` activations of two chunks; a link that takes a millisecond for a chunk.
analyzer::Workload training(uint32_t layers, uint64_t kernel_ns) {
  analyzer::testing::GraphBuilder build(1);
  const uint32_t weight = build.persistent(0);
  std::vector<uint32_t> activations;
  for (uint32_t i = 0; i < layers; ++i) activations.push_back(build.transient(0, 2));
  for (uint32_t i = 0; i < layers; ++i) {
    build.kernel(0, "forward", i == 0 ? std::vector{weight} : std::vector{weight, activations[i - 1]}, {activations[i]},
                 kernel_ns);
  }
  for (uint32_t i = layers; i-- > 0;) build.kernel(0, "backward", {activations[i]}, {weight}, kernel_ns);
  analyzer::PlanOptions options;
  options.machine = analyzer::testing::slow_link();
  Result<analyzer::Workload> workload = analyzer::make_workload(build.build(), options);
  EXPECT_TRUE(workload.ok()) << workload.status().message();
  return std::move(workload.value());
}

TEST(BudgetCurve, GoesFromTheSmallestBudgetToThePeakAndNeverUp) {
  const analyzer::Workload workload = training(12, 500'000);
  const BudgetCurve curve = budget_curve(workload, plan::Safety::trusted, 60'000);
  ASSERT_GE(curve.points.size(), 5u);
  EXPECT_EQ(curve.points.front().budget_bytes, workload.minimum_bytes);
  EXPECT_EQ(curve.points.back().budget_bytes, curve.peak_bytes);
  EXPECT_EQ(curve.points.back().time_ns, curve.compute_ns);
  EXPECT_GT(curve.points.front().time_ns, curve.compute_ns);
  EXPECT_GT(curve.points.front().moved_bytes, curve.points.back().moved_bytes);
  EXPECT_GT(curve.full_speed_bytes, workload.minimum_bytes);
  for (const BudgetPoint& one : curve.points) {
    if (one.budget_bytes >= curve.full_speed_bytes) {
      EXPECT_LE(one.time_ns, curve.compute_ns * 102 / 100) << one.budget_bytes;
    }
  }
}

TEST(BudgetCurve, SlowKernelsHideAllThatMoves) {
  const BudgetCurve curve = budget_curve(training(12, 20'000'000), plan::Safety::trusted, 60'000);
  EXPECT_LT(curve.full_speed_bytes, curve.peak_bytes);
}

TEST(BudgetCurve, WithoutTimeThereIsNone) {
  EXPECT_TRUE(budget_curve(training(12, 500'000), plan::Safety::trusted, 0).points.size() < 3);
}

}  // namespace
}  // namespace reprise::report

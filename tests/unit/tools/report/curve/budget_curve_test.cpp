#include "tools/report/curve/budget_curve.h"

#include "analyzer/planner/to_plan.h"
#include "tests/support/graph_builder.h"
#include "tests/support/trace_builder.h"
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
  return good(analyzer::make_workload(build.build(), options));
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

// What a budget has beyond its last whole chunk is of no use, so none is named that has a part of one, nor one that is
// a chunk larger than it need be.
TEST(BudgetCurve, TheBudgetForFullSpeedIsTheSmallestToTheChunk) {
  for (const uint32_t layers : {9u, 12u, 17u}) {
    for (const uint64_t kernel_ns : {uint64_t{300'000}, uint64_t{700'000}, uint64_t{1'000'000}}) {
      const analyzer::Workload workload = training(layers, kernel_ns);
      const uint64_t chunk = workload.graph.chunk_bytes;
      const BudgetCurve curve = budget_curve(workload, plan::Safety::trusted, 60'000);
      for (const BudgetPoint& one : curve.points) {
        EXPECT_EQ((one.budget_bytes - curve.minimum_bytes) % chunk, 0u) << one.budget_bytes;
      }
      ASSERT_GT(curve.full_speed_bytes, curve.minimum_bytes);
      analyzer::PlanOptions options;
      options.policy = curve.policy;
      options.recompute = false;
      options.budget_bytes = curve.full_speed_bytes - chunk;
      const uint64_t with_less = analyzer::make_plan(workload, options).value().predicted_ns;
      EXPECT_GT(with_less, curve.compute_ns * 102 / 100) << layers << " layers, " << kernel_ns;
    }
  }
}

// ... and its time is that of the plan for its whole chunks, not one in between.
TEST(BudgetCurve, BetweenTwoBudgetsTheSmallerOnesPlanHolds) {
  BudgetCurve curve;
  curve.points = {{10, 900, 8}, {20, 500, 4}, {30, 400, 0}};
  EXPECT_EQ(time_at(curve, 9), 0u);
  EXPECT_EQ(time_at(curve, 10), 900u);
  EXPECT_EQ(time_at(curve, 19), 900u);
  EXPECT_EQ(time_at(curve, 20), 500u);
  EXPECT_EQ(time_at(curve, 99), 400u);
}

// The plan of a run is one that there is: nothing is said to be out of reach that it reaches, from its budget on.
TEST(BudgetCurve, APlanThatThereIsCounts) {
  const analyzer::Workload workload = training(12, 1'000'000);
  const uint64_t chunk = workload.graph.chunk_bytes;
  const BudgetCurve without = budget_curve(workload, plan::Safety::trusted, 60'000);
  plan::Plan own;
  own.budget_bytes = without.full_speed_bytes - 2 * chunk + chunk / 2;
  own.predicted_ns = without.compute_ns + 5;
  const BudgetCurve with = budget_curve(workload, plan::Safety::trusted, 60'000, &own);
  EXPECT_EQ(with.full_speed_bytes, without.full_speed_bytes - 2 * chunk);
  EXPECT_EQ(time_at(with, own.budget_bytes), with.compute_ns + 5);
  for (size_t i = 1; i < with.points.size(); ++i) {
    EXPECT_LE(with.points[i].time_ns, with.points[i - 1].time_ns);
    EXPECT_LT(with.points[i - 1].budget_bytes, with.points[i].budget_bytes);
  }
  own.budget_bytes = workload.minimum_bytes - 1;
  EXPECT_EQ(budget_curve(workload, plan::Safety::trusted, 60'000, &own).full_speed_bytes, without.full_speed_bytes);
}

// The program's own copy runs beside its kernels where the link is free, and waits where a budget keeps it busy: what
// computing alone takes is the same in the plans for both, in the curve, and with other kernel times.
TEST(BudgetCurve, ComputingAloneIsOneFigureWhateverTheBudget) {
  using namespace analyzer::testing;
  TraceBuilder program;
  std::vector<uint64_t> weights;
  for (int i = 0; i < 6; ++i) weights.push_back(program.allocate(kChunk));
  const uint64_t next = program.allocate(kChunk);
  for (int step = 0; step < 4; ++step) {
    program.op(trace::OpKind::copy_host_to_device, "", {writes(next)}, 300'000, 0, kChunk);
    for (const uint64_t weight : weights) program.launch("layer", {reads(weight)}, 200'000);
    program.launch("take", {reads(next)}, 200'000);
  }
  analyzer::PlanOptions options;
  options.machine = slow_link();
  options.policy = "lru";
  const analyzer::Workload workload = analyzer::Planning(program.trace(), options).workload().value();
  const uint64_t alone = budget_curve(workload, plan::Safety::trusted, 60'000).compute_ns;
  EXPECT_GE(alone, 1'400'000u) << "the kernels";
  EXPECT_LT(alone, 1'700'000u) << "the copy beside them";
  for (const uint64_t budget : {workload.minimum_bytes, workload.minimum_bytes + kChunk, workload.peak_bytes}) {
    options.budget_bytes = analyzer::budget_as_run(workload, budget);
    const plan::Plan plan = analyzer::make_plan(workload, options).value();
    EXPECT_EQ(plan.compute_ns, alone) << budget;
    EXPECT_LE(plan.compute_ns, plan.predicted_ns) << budget;
    EXPECT_EQ(plan.predicted_ns > 1'700'000, budget != workload.peak_bytes) << "this test shows less than it says";
    std::vector<uint64_t> twice;
    for (const plan::Call& call : plan.calls) twice.push_back(2 * call.duration_ns);
    EXPECT_EQ(analyzer::retimed(workload, plan, twice)->compute_ns, 2 * alone) << budget;
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

// Properties of plans for random programs and budgets.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <random>
#include <string>

#include "analyzer/planner.h"
#include "analyzer/verify/verify.h"
#include "tests/property/cases.h"
#include "tests/property/interpreter.h"
#include "tests/property/random_program.h"

namespace reprise::analyzer {
namespace {

using namespace testing;

TEST(PlanProperty, EveryOrderComputesWhatTheProgramComputes) {
  EXPECT_TRUE(rc::check("serial hashes in every topological order", [] {
    const Case item = any_case();
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (const Strategy& strategy : strategies(item.plan, random)) {
      const std::string difference = compare_with_serial(item.plan, 3, strategy.choose);
      if (!difference.empty()) RC_FAIL(strategy.name + ": " + difference + "\n" + plan::to_text(item.plan));
    }
  }));
}

TEST(PlanProperty, ADivergenceFindsEveryByte) {
  EXPECT_TRUE(rc::check("bytes survive at any prefix", [] {
    const Case item = any_case();
    std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
    for (const Strategy& strategy : strategies(item.plan, random)) {
      const auto submitted = static_cast<uint32_t>(random() % (item.plan.calls.size() + 1));
      const std::string loss = check_divergence(item.plan, submitted, random() % 8, strategy.choose);
      if (!loss.empty()) {
        RC_FAIL(strategy.name + " after " + std::to_string(submitted) + ": " + loss + "\n" + plan::to_text(item.plan));
      }
    }
  }));
}

TEST(PlanProperty, FeasibleExactlyFromTheSmallestBudget) {
  EXPECT_TRUE(rc::check("feasible iff budget >= minimum", [] {
    const Workload workload = any_workload();
    RC_PRE(workload.minimum_bytes > 1);
    const Result<plan::Plan> least = make_plan(workload, options_for(workload.minimum_bytes));
    if (!least.ok()) RC_FAIL(least.status().message());
    const Result<plan::Plan> less = make_plan(workload, options_for(workload.minimum_bytes - 1));
    RC_ASSERT(!less.ok());
    RC_ASSERT(less.status().code() == StatusCode::infeasible);
    RC_ASSERT(less.status().message().find(std::to_string(workload.minimum_bytes)) != std::string::npos);
  }));
}

TEST(PlanProperty, NothingMovesWhenEverythingFits) {
  EXPECT_TRUE(rc::check("no transfers at the peak", [] {
    const Workload workload = any_workload();
    const Result<plan::Plan> plan = make_plan(workload, options_for(bytes_for_everything(workload)));
    if (!plan.ok()) RC_FAIL(plan.status().message());
    RC_ASSERT(plan.value().offload_bytes == 0u);
    RC_ASSERT(plan.value().reload_bytes == 0u);
    RC_ASSERT(plan.value().remap_count == 0u);
  }));
}

TEST(PlanProperty, SameInputSamePlan) {
  EXPECT_TRUE(rc::check("determinism", [] {
    const trace::Trace trace = random_program(any_shape());
    PlanOptions options;
    options.budget_fraction = 0.7;
    const Result<plan::Plan> a = make_plan(trace, options);
    const Result<plan::Plan> b = make_plan(trace, options);
    RC_ASSERT(a.ok() == b.ok());
    if (a.ok()) RC_ASSERT(plan::serialize(a.value()) == plan::serialize(b.value()));
  }));
}

TEST(PlanProperty, NeverBelowTheBounds) {
  EXPECT_TRUE(rc::check("bounds hold", [] {
    const Case item = any_case();
    const uint64_t capacity = (item.plan.budget_bytes - item.plan.reserved_bytes) / item.plan.granularity;
    const Bounds bounds = bounds_of(item.workload.graph, capacity, item.workload.machine);
    RC_ASSERT(item.plan.offload_bytes >= bounds.offload_bytes);
    RC_ASSERT(item.plan.reload_bytes >= bounds.reload_bytes);
    // Predictions are whole nanoseconds over two iterations.
    RC_ASSERT(item.plan.predicted_ns + 1 >= bounds.iteration_ns);
  }));
}

TEST(PlanProperty, SurvivesItsBinaryForm) {
  EXPECT_TRUE(rc::check("serialize and back", [] {
    const Case item = any_case();
    const Result<plan::Plan> again = plan::deserialize(plan::serialize(item.plan));
    RC_ASSERT(again.ok());
    RC_ASSERT(plan::to_text(again.value()) == plan::to_text(item.plan));
    RC_ASSERT(verify(again.value()).ok());
  }));
}

}  // namespace
}  // namespace reprise::analyzer

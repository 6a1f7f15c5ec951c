// Which loop the figures of other budgets are of, and when a budget for it is one for the whole program.
#include "tools/report/curve/which_loop.h"

#include <gtest/gtest.h>

namespace reprise::report {
namespace {

plan::Plan plan_of(const std::vector<uint64_t>& signatures) {
  plan::Plan plan;
  for (const uint64_t signature : signatures) {
    plan.calls.emplace_back();
    plan.calls.back().signature = signature;
  }
  return plan;
}

analyzer::Workload loop_of(const std::vector<uint64_t>& signatures) {
  analyzer::Workload workload;
  for (const uint64_t signature : signatures) {
    workload.graph.calls.emplace_back();
    workload.graph.calls.back().call.signature = signature;
  }
  return workload;
}

TEST(WhichLoop, APlanIsOfTheLoopWithItsCallsWhereverThatIsEntered) {
  plan::Plan plan = plan_of({5, 6, 7});
  EXPECT_TRUE(is_of_plan(loop_of({7, 5, 6}), &plan, nullptr));
  EXPECT_FALSE(is_of_plan(loop_of({5, 6}), &plan, nullptr)) << "an evaluation";
  plan.calls.emplace_back();
  plan.calls.back().inserted = true;
  EXPECT_TRUE(is_of_plan(loop_of({5, 6, 7}), &plan, nullptr));
  EXPECT_TRUE(is_of_plan(loop_of({5}), nullptr, nullptr)) << "there is no plan";
}

TEST(WhichLoop, ARunWhosePlanIsNotThereIsKnownByItsHash) {
  analyzer::Workload loop = loop_of({5});
  loop.graph.iteration_hash = 0xab;
  RunLog log;
  EXPECT_TRUE(is_of_plan(loop, nullptr, &log));
  log.iteration_hashes = {"00000000000000ab", "1"};
  EXPECT_TRUE(is_of_plan(loop, nullptr, &log));
  log.iteration_hashes = {"00000000000000ac"};
  EXPECT_FALSE(is_of_plan(loop, nullptr, &log));
}

TEST(WhichLoop, ItIsNearlyAllWhereLittleElseIsDone) {
  analyzer::Workload loop;
  loop.iteration.coverage = 0.9;
  EXPECT_TRUE(is_nearly_all(loop, nullptr));
  loop.iteration.coverage = 0.3;
  EXPECT_FALSE(is_nearly_all(loop, nullptr));
  RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"iteration","mode":"planned","wall_ns":900}
{"kind":"iteration","mode":"on_demand","wall_ns":100}
{"kind":"end","time_ns":2000})");
  EXPECT_TRUE(is_nearly_all(loop, &log)) << "0.9 of it planned, and 0.3 of the rest";
  log.plan_count = 2;
  EXPECT_FALSE(is_nearly_all(loop, &log));
  log.plan_count = 1;
  log.iterations[0].wall_ns = 500;
  EXPECT_FALSE(is_nearly_all(loop, &log));
}

}  // namespace
}  // namespace reprise::report

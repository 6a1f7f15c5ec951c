// Which loop the figures of other budgets are of, and when a budget for it is one for the whole program.
#include "tools/report/curve/which_loop.h"

#include "tests/support/test.h"
#include "tests/support/trace_builder.h"

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

// Steps, which a plan has ruled but for the first ones, and the evaluations in between, which cover more of what was
// recorded; and the other way round.
TEST(WhichLoop, ThePlansLoopIsFoundWhateverCoversMore) {
  using analyzer::testing::reads;
  using analyzer::testing::updates;
  for (const bool evaluations : {false, true}) {
    for (const int rounds : {1, 4}) {
      analyzer::testing::TraceBuilder program;
      const uint64_t w = program.allocate(analyzer::testing::kChunk);
      std::vector<uint64_t> signatures;
      const auto launch = [&](const std::string& name, bool wanted) {
        program.launch(name, {updates(w)}, wanted ? 1'000 : 900'000);
        const auto& op = std::get<trace::Op>(program.trace().events.back());
        if (wanted && signatures.size() < 2) signatures.push_back(op.record.signature);
      };
      for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 3; ++i) {
          launch("forward", !evaluations);
          launch("backward", !evaluations);
        }
        for (int i = 0; i < 4; ++i) {
          launch("evaluate", evaluations);
          launch("loss", evaluations);
        }
        if (round == 0) launch("save" + std::to_string(round), false);
      }
      const plan::Plan plan = plan_of({signatures[1], signatures[0]});
      analyzer::Planning planning(program.trace(), {});
      const auto most = good(planning.workload());
      EXPECT_FALSE(is_of_plan(most, &plan, nullptr)) << "otherwise this test shows nothing";
      EXPECT_TRUE(is_of_plan(good(workload_of(planning, &plan)), &plan, nullptr)) << evaluations << rounds;
    }
  }
}

// Most of it was not recorded, as the plan ruled it.
TEST(WhichLoop, HowMuchItIsOfARunCountsWhatThePlanRuled) {
  analyzer::Workload loop;
  loop.iteration.coverage = 0.25;
  loop.iteration.timed = true;
  EXPECT_EQ(covers_of_run(loop, nullptr, nullptr, false), "25 % of the recorded device time");
  RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"iteration","mode":"planned","plan":0,"wall_ns":600}
{"kind":"iteration","mode":"planned","plan":1,"wall_ns":200}
{"kind":"iteration","mode":"on_demand","wall_ns":100}
{"kind":"end","time_ns":2000})");
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, true), "25 % of the recorded device time") << "no iteration was planned";
  log.iterations_planned = 2;
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, true), "about 65 % of the run's time");
}

// Another run's recording knows nothing of what this one did away from the plan.
TEST(WhichLoop, AnotherRunsRecordingSaysNothingOfTheRest) {
  analyzer::Workload loop;
  loop.iteration.coverage = 0.99;
  loop.iteration.timed = true;
  RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"activate","iteration":0,"plan":0,"at_ns":2000}
{"kind":"iteration","mode":"planned","plan":0,"wall_ns":300}
{"kind":"iteration","mode":"planned","plan":0,"wall_ns":300}
{"kind":"end","time_ns":3000,"iterations_planned":2})");
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, false), "about 60 % of the run's time since a plan came in force");
  EXPECT_FALSE(is_nearly_all(loop, nullptr, &log, false));
  EXPECT_TRUE(is_nearly_all(loop, nullptr, &log, true));
  log.iterations_planned = 0;
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, false), "99 % of the recorded device time");
}

// The end of the loop cuts the last iteration short: what was over of it is of the loop, by its kernels' times where
// the plan is there, else by its calls.
TEST(WhichLoop, AnIterationThatWasLeftIsOfTheLoopAsFarAsItGot) {
  analyzer::Workload loop;
  loop.iteration.coverage = 0.5;
  RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"plan","calls":10}
{"kind":"activate","iteration":0,"plan":0,"at_ns":2000}
{"kind":"iteration","index":0,"mode":"planned","plan":0,"wall_ns":400}
{"kind":"divergence","iteration":1,"call":5,"expected":"a","got":"b"}
{"kind":"end","time_ns":3000,"iterations_planned":1,"iterations_on_demand":0,"iterations_unfinished":1})");
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, false), "about 60 % of the run's time since a plan came in force");
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, true), "about 65 % of the run's time") << "0.3, and half of the rest";
  plan::Plan plan = plan_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  plan.calls[0].duration_ns = 90;
  plan.calls[6].duration_ns = 10;
  EXPECT_EQ(covers_of_run(loop, &plan, &log, false), "about 76 % of the run's time since a plan came in force");
  log.divergences.front().loop_end = true;
  EXPECT_EQ(covers_of_run(loop, &plan, &log, false), "about 40 % of the run's time since a plan came in force");
}

// What comes behind, as an evaluation, is something else; so is what another plan ruled, and where that was left.
TEST(WhichLoop, WhatComesBehindAnIterationThatWasLeftIsSomethingElse) {
  analyzer::Workload loop;
  const std::string start = R"({"kind":"start","time_ns":1000}
{"kind":"plan","calls":10}
)";
  const std::string steps = R"({"kind":"activate","iteration":0,"plan":0,"at_ns":2000}
{"kind":"iteration","index":0,"mode":"planned","plan":0,"wall_ns":100}
{"kind":"divergence","iteration":1,"call":8,"expected":"a","got":"b"}
)";
  const std::string evaluation = R"({"kind":"plan","calls":10}
{"kind":"activate","iteration":2,"plan":1,"at_ns":2500}
{"kind":"iteration","index":2,"mode":"planned","plan":1,"wall_ns":100}
{"kind":"divergence","iteration":3,"call":8,"expected":"a","got":"b"}
)";
  const std::string end = R"({"kind":"end","time_ns":3000,"iterations_planned":2,"iterations_on_demand":0,)"
                          R"("iterations_unfinished":2})";
  const RunLog one = parse_run_log(start + steps + end);
  EXPECT_EQ(covers_of_run(loop, nullptr, &one, false), "about 18 % of the run's time since a plan came in force");
  const RunLog two = parse_run_log(start + steps + evaluation + end);
  EXPECT_EQ(covers_of_run(loop, nullptr, &two, false), "about 18 % of the run's time since a plan came in force");
}

// Two of them, after one that was left in its middle and gone through to its end.
TEST(WhichLoop, IterationsWithoutThePlanAreOfTheLoop) {
  analyzer::Workload loop;
  const RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"plan","calls":10}
{"kind":"iteration","index":0,"mode":"on_demand","wall_ns":100,"calls":10,"at_ns":1900}
{"kind":"activate","iteration":1,"plan":0,"at_ns":2000}
{"kind":"iteration","index":1,"mode":"planned","plan":0,"wall_ns":100,"at_ns":2100}
{"kind":"divergence","iteration":2,"call":6,"expected":"a","got":"b"}
{"kind":"activate","iteration":3,"plan":0,"at_ns":2600}
{"kind":"iteration","index":3,"mode":"planned","plan":0,"wall_ns":100,"at_ns":2700}
{"kind":"end","time_ns":3000,"iterations_planned":2,"iterations_on_demand":4,"iterations_unfinished":0})");
  EXPECT_EQ(covers_of_run(loop, nullptr, &log, false), "about 50 % of the run's time since a plan came in force");
}

TEST(WhichLoop, ItIsNearlyAllWhereLittleElseIsDone) {
  analyzer::Workload loop;
  loop.iteration.coverage = 0.9;
  EXPECT_TRUE(is_nearly_all(loop, nullptr, nullptr, false));
  loop.iteration.coverage = 0.3;
  EXPECT_FALSE(is_nearly_all(loop, nullptr, nullptr, false));
  RunLog log = parse_run_log(R"({"kind":"start","time_ns":1000}
{"kind":"iteration","mode":"planned","wall_ns":900}
{"kind":"iteration","mode":"on_demand","wall_ns":100}
{"kind":"end","time_ns":2000})");
  EXPECT_TRUE(is_nearly_all(loop, nullptr, &log, true)) << "0.9 of it planned, and 0.3 of the rest";
  log.plan_count = 2;
  EXPECT_FALSE(is_nearly_all(loop, nullptr, &log, true));
  log.plan_count = 1;
  log.iterations[0].wall_ns = 500;
  EXPECT_FALSE(is_nearly_all(loop, nullptr, &log, true));
}

}  // namespace
}  // namespace reprise::report

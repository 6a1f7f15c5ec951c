// Programs of several loops: each gets a plan of its own, whatever the budget, and prints what it prints without.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

struct Phases {
  std::string kind;
  int rounds;
  uint64_t plans;  // at least
  // Planned of all iterations of any kind, at least; so many are seen before the first plan, and between two.
  uint64_t planned;
};

void PrintTo(const Phases& value, std::ostream* out) { *out << value.kind; }

Words command(const std::string& kind, int rounds) {
  return {built("bin/phases_program"), built("bin/hash_kernels.cubin"), kind, std::to_string(rounds)};
}

struct Managed {
  Outcome outcome;
  std::vector<json> log;
};

Managed managed(const std::string& kind, int rounds, const Environment& more) {
  const Scratch scratch;
  Managed run_;
  run_.outcome = run(command(kind, rounds), merged(more, {{"REPRISE_RUN_LOG", scratch.path("log")}}));
  run_.log = read_run_log(scratch.path("log"));
  return run_;
}

uint64_t number(const Managed& run, const char* key) {
  const auto ends = lines_of(run.log, "end");
  return ends.empty() ? 0 : ends.back()[key].get<uint64_t>();
}

// Those that have ruled an iteration.
std::set<uint64_t> plans_in_use(const Managed& run) {
  std::set<uint64_t> plans;
  for (const auto& line : lines_of(run.log, "iteration")) {
    if (line.contains("plan")) plans.insert(line["plan"].get<uint64_t>());
  }
  return plans;
}

class SeveralPlans : public testing::TestWithParam<Phases> {};

TEST_P(SeveralPlans, AreMadeAndKept) {
  const Phases& phases = GetParam();
  const Outcome plain = well(run(command(phases.kind, phases.rounds), simulated_device()));
  for (const char* budget : {"80%", "60%", "50%"}) {
    for (const char* safety : {"strict", "trusted"}) {
      const Managed run =
          managed(phases.kind, phases.rounds,
                  merged(preloaded(budget), {{"REPRISE_SAFETY", safety}, {"REPRISE_WAIT_FOR_PLAN", "1"}}));
      const std::string where = phases.kind + " " + budget + " " + safety;
      EXPECT_EQ(run.outcome.exit_code, 0) << where << ": " << run.outcome.err;
      EXPECT_EQ(run.outcome.out, plain.out) << where;
      EXPECT_EQ(run.outcome.err, "") << where;
      EXPECT_GE(number(run, "plans"), phases.plans) << where;
      EXPECT_GE(plans_in_use(run).size(), phases.plans) << where;
      EXPECT_GE(number(run, "iterations_planned"), phases.planned) << where;
    }
  }
}

// Iterations in all: 6 * (5 + 4), 6 * (7 + 1), 8 * (4 + 1), then 24 each. A planned iteration may be a whole round.
INSTANTIATE_TEST_SUITE_P(Programs, SeveralPlans,
                         testing::Values(Phases{"evaluate", 6, 2, 30}, Phases{"save", 6, 2, 30},
                                         Phases{"accumulate", 8, 2, 20}, Phases{"alternate", 24, 2, 14},
                                         Phases{"grow", 24, 2, 14}, Phases{"other", 24, 2, 14},
                                         Phases{"keep", 24, 2, 15}, Phases{"loss", 6, 1, 10},
                                         Phases{"evals", 6, 2, 24}));

// What differs between two iterations is not what makes them others.
class OneIdentity : public testing::TestWithParam<Phases> {};

TEST_P(OneIdentity, IsPlanned) {
  const Phases& phases = GetParam();
  const Outcome plain = well(run(command(phases.kind, phases.rounds), simulated_device()));
  for (const char* safety : {"strict", "trusted"}) {
    const Managed run = managed(phases.kind, phases.rounds,
                                merged(preloaded("60%"), {{"REPRISE_SAFETY", safety}, {"REPRISE_WAIT_FOR_PLAN", "1"}}));
    EXPECT_EQ(run.outcome.exit_code, 0) << safety << ": " << run.outcome.err;
    EXPECT_EQ(run.outcome.out, plain.out) << safety;
    EXPECT_EQ(run.outcome.err, "") << safety;
    EXPECT_LE(number(run, "plans"), phases.plans) << safety;
    EXPECT_GE(number(run, "iterations_planned"), phases.planned) << safety;
  }
}

// Steps in all: 30, 40 in twos, then as many as rounds; those of "moved" are moved five times. "micros" and "skips"
// leave out parts of planned iterations.
INSTANTIATE_TEST_SUITE_P(Programs, OneIdentity,
                         testing::Values(Phases{"half", 6, 2, 17}, Phases{"turns", 40, 1, 10},
                                         Phases{"rotate", 40, 1, 34}, Phases{"fresh", 24, 1, 18},
                                         Phases{"random", 24, 1, 18}, Phases{"slices", 36, 1, 20},
                                         Phases{"moved", 40, 1, 26}, Phases{"collected", 60, 1, 40},
                                         Phases{"lengths", 40, 3, 30}, Phases{"varied", 40, 1, 36},
                                         Phases{"rising", 60, 12, 34}, Phases{"micros", 40, 3, 70},
                                         Phases{"skips", 40, 1, 28}));

TEST(SeveralPlansTest, PartsBecomeAWhole) {
  // Micro-steps and updates have plans; then the step, of all of them, has one, and it is the last.
  const Managed run = managed("accumulate", 30, merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
  const auto iterations = lines_of(run.log, "iteration");
  ASSERT_FALSE(iterations.empty());
  ASSERT_GE(number(run, "plans"), 3u);
  EXPECT_EQ(iterations.back().value("plan", uint64_t{99}), number(run, "plans") - 1);
  EXPECT_EQ(number(run, "divergences"), 0u);
}

TEST(SeveralPlansTest, TwelveSizesHaveTwelvePlans) {
  const Managed run = managed("sizes", 144, merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
  EXPECT_EQ(plans_in_use(run).size(), 12u);
  EXPECT_GE(number(run, "iterations_planned"), 72u);
}

TEST(SeveralPlansTest, OneLoopHasOnePlan) {
  const Managed run = managed("steps", 24, merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
  EXPECT_EQ(number(run, "plans"), 1u);
  EXPECT_EQ(lines_of(run.log, "activate").size(), 1u);
  EXPECT_GE(number(run, "iterations_planned"), 20u);
}

TEST(SeveralPlansTest, AGivenPlanIsTheOnlyOne) {
  const Scratch scratch;
  const Outcome recorded =
      run(command("evaluate", 3), merged(simulated_device(), {{"LD_PRELOAD", built("lib/reprise/libreprise.so")},
                                                              {"REPRISE_DRIVER", built("lib/sim/libcuda.so.1")},
                                                              {"REPRISE_TRACE", scratch.path("trace")}}));
  ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
  well(run(
      {built("bin/reprise"), "plan", scratch.path("trace"), "--budget", "60%", "-o", scratch.path("plan"), "--quiet"}));
  const Managed replayed = managed("evaluate", 6, merged(preloaded("60%"), {{"REPRISE_PLAN", scratch.path("plan")}}));
  EXPECT_EQ(replayed.outcome.out, run(command("evaluate", 6), simulated_device()).out);
  EXPECT_EQ(lines_of(replayed.log, "plan").size(), 1u);
  EXPECT_GE(number(replayed, "iterations_planned"), 4u);  // of rounds
}

TEST(SeveralPlansTest, WhatFitsFirstIsPlannedWhenItHasGrown) {
  // Everything fits until the program grows; then the larger steps are planned.
  const Managed run = managed("grow", 24, merged(preloaded("7000KiB"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
  EXPECT_EQ(run.outcome.out, reprise::e2e::run(command("grow", 24), simulated_device()).out);
  EXPECT_EQ(number(run, "plans"), 1u);
  EXPECT_GE(number(run, "iterations_planned"), 10u);
}

TEST(SeveralPlansTest, WhatIsTooSmallFirstRisesToWhatCanBePlanned) {
  // One call of the first steps needs more than 13 % of them; 13 % of what there is later hold the larger ones.
  const Managed run = managed("grow", 30, merged(preloaded("13%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.out, reprise::e2e::run(command("grow", 30), simulated_device()).out);
  EXPECT_GE(number(run, "iterations_planned"), 10u);
  EXPECT_GE(number(run, "plans"), 2u);
  EXPECT_EQ(run.outcome.err, "");
}

// One call of the first steps needs more than 19 % of them; the loop behind them does not.
TEST(SeveralPlansTest, WhatComesBehindALoopThatIsTooLargeIsPlanned) {
  const Managed run = managed("shrink", 36, merged(preloaded("19%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.out, reprise::e2e::run(command("shrink", 36), simulated_device()).out);
  EXPECT_GE(number(run, "iterations_planned"), 10u);
  EXPECT_GE(number(run, "plans"), 2u);
}

// The second loop ends at any distance behind its plan; where that ruled none of its iterations, the log says why.
TEST(SeveralPlansTest, OfAPlanThatRuledNothingItIsToldWhy) {
  uint64_t idle = 0;
  for (int rounds = 8; rounds <= 12; ++rounds) {
    const Managed run = managed("other", rounds, merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
    EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
    if (number(run, "iterations_planned") == 0) continue;
    std::set<uint64_t> told;
    for (const auto& line : lines_of(run.log, "on_demand")) {
      if (line.contains("plan")) told.insert(line["plan"].get<uint64_t>());
    }
    const std::set<uint64_t> used = plans_in_use(run);
    for (uint64_t plan = 0; plan < number(run, "plans"); ++plan) {
      EXPECT_NE(used.count(plan), told.count(plan)) << rounds << " rounds, plan " << plan;
      idle += 1 - used.count(plan);
    }
  }
  EXPECT_GT(idle, 0u) << "no plan came too late: the test shows nothing";
}

// What repeated before its loop was found is none of its iterations, nor is the plan's context the only one with some.
TEST(SeveralPlansTest, IterationsOfAllContextsAreThoseOfTheLoop) {
  const Managed run = managed("reset", 28, merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}}));
  EXPECT_EQ(run.outcome.out, reprise::e2e::run(command("reset", 28), simulated_device()).out);
  EXPECT_GE(number(run, "iterations_planned"), 10u);
  EXPECT_EQ(number(run, "iterations_planned") + number(run, "iterations_on_demand"), 28u);
}

TEST(SeveralPlansTest, ATraceWithPausesIsARecording) {
  const Scratch scratch;
  const Managed run =
      managed("evaluate", 6,
              merged(preloaded("60%"), {{"REPRISE_WAIT_FOR_PLAN", "1"}, {"REPRISE_TRACE", scratch.path("trace")}}));
  EXPECT_EQ(run.outcome.exit_code, 0) << run.outcome.err;
  const Outcome dump = well(reprise::e2e::run({built("bin/reprise"), "dump", scratch.path("trace")}));
  EXPECT_TRUE(has(dump.out, "\npause between calls "));
  well(reprise::e2e::run(
      {built("bin/reprise"), "plan", scratch.path("trace"), "--budget", "60%", "-o", scratch.path("plan"), "--quiet"}));
}

}  // namespace
}  // namespace reprise::e2e

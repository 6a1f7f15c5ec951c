// Record, plan, replay, report as separate commands, as a user would type them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

const std::vector<std::string> kTrainer = {"--layers",  "2",  "--width", "64", "--heads", "4",
                                           "--context", "32", "--batch", "8",  "--seed",  "1"};

class Stages : public testing::Test {
 protected:
  static Outcome reprise(std::vector<std::string> arguments, const Environment& more = {}) {
    arguments.insert(arguments.begin(), built("bin/reprise"));
    Environment environment = simulated_device();
    environment.erase("LD_LIBRARY_PATH");  // --device sim sets what is needed
    return run(arguments, merged(environment, more));
  }
  static std::vector<std::string> with_program(std::vector<std::string> arguments, const std::string& steps = "10") {
    arguments.push_back("--");
    arguments.push_back(built("bin/chargpt"));
    arguments.insert(arguments.end(), kTrainer.begin(), kTrainer.end());
    arguments.insert(arguments.end(), {"--steps", steps});
    return arguments;
  }
  void record() {
    std::vector<std::string> program = {built("bin/chargpt")};
    program.insert(program.end(), kTrainer.begin(), kTrainer.end());
    program.insert(program.end(), {"--steps", "10"});
    plain_ = run(program, merged(simulated_device(), {{"REPRISE_SIM_STATS", scratch_.path("stats.plain")}}));
    ASSERT_EQ(plain_.exit_code, 0) << plain_.err;
    const Outcome recorded = reprise(with_program({"record", "--device", "sim", "-o", trace()}));
    ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
    ASSERT_EQ(recorded.out, plain_.out);
  }
  std::string trace() const { return scratch_.path("a.trace"); }

  // Plans for `budget`, replays, and checks bits and peak against `limit` bytes.
  void plan_and_replay(const std::string& budget, double limit) {
    const Outcome planned = reprise({"plan", trace(), "--budget", budget, "-o", scratch_.path("a.plan")});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    const Outcome replayed = reprise(with_program({"replay", "--device", "sim", "--plan", scratch_.path("a.plan"),
                                                   "--run-log", scratch_.path("a.run")}),
                                     {{"REPRISE_SIM_STATS", scratch_.path("stats")}});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
    EXPECT_EQ(replayed.out, plain_.out) << replayed.err;
    EXPECT_LE(read_stats(scratch_.path("stats"))["peak_bytes"].get<double>(), limit);
    const auto ends = lines_of(read_run_log(scratch_.path("a.run")), "end");
    ASSERT_FALSE(ends.empty());
    EXPECT_GT(ends.back().value("iterations_planned", 0), 4);
  }

  Scratch scratch_;
  Outcome plain_;
};

// The number in "... at least 12345 bytes ..." that an infeasible plan names.
uint64_t smallest_budget(const std::string& message) {
  const std::string words = "at least ";
  const size_t start = message.find(words);
  return start == std::string::npos ? 0 : std::strtoull(message.c_str() + start + words.size(), nullptr, 10);
}

TEST_F(Stages, RecordPlanReplayReport) {
  record();
  const double peak = read_stats(scratch_.path("stats.plain"))["peak_bytes"].get<double>();
  plan_and_replay("50%", peak * 0.5);
  plan_and_replay("35%", peak * 0.35);
  const Outcome report =
      reprise({"report", trace(), scratch_.path("a.plan"), scratch_.path("a.run"), "-o", scratch_.path("a.html")});
  EXPECT_EQ(report.exit_code, 0) << report.err;
  EXPECT_GT(std::filesystem::file_size(scratch_.path("a.html")), 10000u);
  const Outcome exported = reprise({"export", trace(), "--format", "perfetto", "-o", scratch_.path("a.json")});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  EXPECT_FALSE(nlohmann::json::parse(read_file(scratch_.path("a.json")), nullptr, false).is_discarded());
}

TEST_F(Stages, CallSitesAreRecordedUnlessTheyAreSwitchedOff) {
  for (const bool on : {true, false}) {
    const Outcome recorded = reprise(with_program({"record", "--device", "sim", "-o", trace()}, "2"),
                                     {{"REPRISE_CALL_SITES", on ? "1" : "0"}});
    ASSERT_EQ(recorded.exit_code, 0) << recorded.err;
    const Outcome dumped = reprise({"dump", trace()});
    EXPECT_EQ(dumped.out.find("chargpt+0x") != std::string::npos || dumped.out.find("(chargpt)") != std::string::npos,
              on);
  }
}

TEST_F(Stages, TheSmallestBudgetThatTheErrorNamesWorksAndOneByteLessDoesNot) {
  record();
  const Outcome refused = reprise({"plan", trace(), "--budget", "1%", "-o", scratch_.path("a.plan")});
  EXPECT_EQ(refused.exit_code, 1);
  const uint64_t smallest = smallest_budget(refused.err);
  ASSERT_GT(smallest, 0u) << refused.err;
  plan_and_replay(std::to_string(smallest), static_cast<double>(smallest));
  const Outcome below =
      reprise({"plan", trace(), "--budget", std::to_string(smallest - 1), "-o", scratch_.path("b.plan")});
  EXPECT_EQ(below.exit_code, 1);
  EXPECT_EQ(smallest_budget(below.err), smallest) << below.err;
}

TEST_F(Stages, TheLauncherRunsEverythingAndWritesAReport) {
  record();
  const Outcome outcome =
      reprise(with_program({"run", "--device", "sim", "--budget", "50%", "-o", scratch_.path("run.html")}),
              {{"REPRISE_SIM_STATS", scratch_.path("stats")}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, plain_.out);
  EXPECT_LE(read_stats(scratch_.path("stats"))["peak_bytes"].get<double>(),
            read_stats(scratch_.path("stats.plain"))["peak_bytes"].get<double>() * 0.5);
  EXPECT_GT(std::filesystem::file_size(scratch_.path("run.html")), 10000u);
}

TEST_F(Stages, ABudgetBelowTheSmallestFailsWithTheNumbersAndWithoutACrash) {
  record();
  const uint64_t peak = read_stats(scratch_.path("stats.plain"))["peak_bytes"].get<uint64_t>();
  const Outcome outcome = reprise(with_program(
      {"run", "--device", "sim", "--budget", std::to_string(peak * 3 / 100), "-o", scratch_.path("run.html")}, "500"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.exit_code, 128) << "killed by a signal";
  EXPECT_NE(outcome.err.find("of device memory at once, the budget leaves"), std::string::npos) << outcome.err;
}

// The recording goes on while the plan is made: two figures of one loop, and each command says which is whose.
TEST_F(Stages, APlanOfTheFirstIterationsIsToldFromOneOfAll) {
  const std::string plan = scratch_.path("run.plan");
  const Outcome ran = reprise(with_program({"run", "--device", "sim", "--budget", "60%", "--trace", trace(),
                                            "--save-plan", plan, "-o", scratch_.path("run.html")},
                                           "30"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string told = trace() + ": recorded by a run that made a plan of its first iterations";
  const Outcome planned = reprise({"plan", trace(), "--budget", "60%", "-o", scratch_.path("later.plan")});
  EXPECT_NE(planned.err.find(told), std::string::npos) << planned.err;
  const Outcome simulated = reprise({"simulate", trace(), "--budget", "60%", "--no-fluid"});
  EXPECT_NE(simulated.err.find(told), std::string::npos) << simulated.err;
  EXPECT_EQ(reprise({"plan", trace(), "--budget", "60%", "--quiet", "-o", scratch_.path("q.plan")}).err, "");
  const std::string other =
      "The plan was made with other kernel times than the recording has as a whole: an iteration ";
  const auto page_of = [&](const std::string& of) {
    EXPECT_EQ(reprise({"report", trace(), of, "-o", scratch_.path("a.html")}).exit_code, 0);
    return read_file(scratch_.path("a.html"));
  };
  const auto computing = [&](const std::string& of) {
    const std::string text = reprise({"dump", of}).out;
    return std::strtoull(text.c_str() + text.find("compute_ns=") + 11, nullptr, 10);
  };
  const bool differs = computing(plan) != computing(scratch_.path("later.plan"));
  EXPECT_EQ(page_of(plan).find(other) != std::string::npos, differs);
  EXPECT_EQ(page_of(plan).find("with kernel times as recorded until the plan was made") != std::string::npos, differs);
  EXPECT_EQ(page_of(scratch_.path("later.plan")).find(other), std::string::npos);
}

// What `record` makes is of one kind.
TEST_F(Stages, OfARecordingWithoutAPlanNothingIsSaidOfTimes) {
  record();
  const Outcome planned = reprise({"plan", trace(), "--budget", "60%", "-o", scratch_.path("a.plan")});
  EXPECT_EQ(planned.err.find("kernel times"), std::string::npos) << planned.err;
}

}  // namespace
}  // namespace reprise::e2e

// Record, plan, replay, report as separate commands, as a user would type them.
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

const Words kTrainer = {"--layers",  "2",  "--width", "64", "--heads", "4",
                        "--context", "32", "--batch", "8",  "--seed",  "1"};

class Stages : public LauncherTest {
 protected:
  static Words with_program(Words arguments, const std::string& steps = "10") {
    arguments.push_back("--");
    arguments.push_back(built("bin/chargpt"));
    arguments.insert(arguments.end(), kTrainer.begin(), kTrainer.end());
    arguments.insert(arguments.end(), {"--steps", steps});
    return arguments;
  }
  void record() {
    Words program = joined(joined({built("bin/chargpt")}, kTrainer), {"--steps", "10"});
    plain_ = well(run(program, merged(simulated_device(), {{"REPRISE_SIM_STATS", file("stats.plain")}})));
    ASSERT_EQ(well(reprise(with_program({"record", "--device", "sim", "-o", trace()}))).out, plain_.out);
  }
  std::string trace() const { return file("a.trace"); }

  // Plans for `budget`, replays, and checks bits and peak against `limit` bytes.
  void plan_and_replay(const std::string& budget, double limit) {
    well(reprise({"plan", trace(), "--budget", budget, "-o", file("a.plan")}));
    const Outcome replayed =
        reprise(with_program({"replay", "--device", "sim", "--plan", file("a.plan"), "--run-log", file("a.run")}), {},
                {{"REPRISE_SIM_STATS", file("stats")}});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
    EXPECT_EQ(replayed.out, plain_.out) << replayed.err;
    EXPECT_LE(read_stats(file("stats"))["peak_bytes"].get<double>(), limit);
    const auto ends = lines_of(read_run_log(file("a.run")), "end");
    ASSERT_FALSE(ends.empty());
    EXPECT_GT(ends.back().value("iterations_planned", 0), 4);
  }

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
  const double peak = read_stats(file("stats.plain"))["peak_bytes"].get<double>();
  plan_and_replay("50%", peak * 0.5);
  plan_and_replay("35%", peak * 0.35);
  well(reprise({"report", trace(), file("a.plan"), file("a.run"), "-o", file("a.html")}));
  EXPECT_GT(std::filesystem::file_size(file("a.html")), 10000u);
  well(reprise({"export", trace(), "--format", "perfetto", "-o", file("a.json")}));
  EXPECT_FALSE(json::parse(read_file(file("a.json")), nullptr, false).is_discarded());
}

TEST_F(Stages, CallSitesAreRecordedUnlessTheyAreSwitchedOff) {
  for (const bool on : {true, false}) {
    well(reprise(with_program({"record", "--device", "sim", "-o", trace()}, "2"), {},
                 {{"REPRISE_CALL_SITES", on ? "1" : "0"}}));
    const Outcome dumped = reprise({"dump", trace()});
    EXPECT_EQ(dumped.out.find("chargpt+0x") != std::string::npos || dumped.out.find("(chargpt)") != std::string::npos,
              on);
  }
}

TEST_F(Stages, TheSmallestBudgetThatTheErrorNamesWorksAndOneByteLessDoesNot) {
  record();
  const Outcome refused = reprise({"plan", trace(), "--budget", "1%", "-o", file("a.plan")});
  EXPECT_EQ(refused.exit_code, 1);
  const uint64_t smallest = smallest_budget(refused.err);
  ASSERT_GT(smallest, 0u) << refused.err;
  plan_and_replay(std::to_string(smallest), static_cast<double>(smallest));
  const Outcome below = reprise({"plan", trace(), "--budget", std::to_string(smallest - 1), "-o", file("b.plan")});
  EXPECT_EQ(below.exit_code, 1);
  EXPECT_EQ(smallest_budget(below.err), smallest) << below.err;
}

TEST_F(Stages, TheLauncherRunsEverythingAndWritesAReport) {
  record();
  const Outcome outcome =
      well(reprise(with_program({"run", "--device", "sim", "--budget", "50%", "-o", file("run.html")}), {},
                   {{"REPRISE_SIM_STATS", file("stats")}}));
  EXPECT_EQ(outcome.out, plain_.out);
  EXPECT_LE(read_stats(file("stats"))["peak_bytes"].get<double>(),
            read_stats(file("stats.plain"))["peak_bytes"].get<double>() * 0.5);
  EXPECT_GT(std::filesystem::file_size(file("run.html")), 10000u);
}

TEST_F(Stages, ABudgetBelowTheSmallestFailsWithTheNumbersAndWithoutACrash) {
  record();
  const uint64_t peak = read_stats(file("stats.plain"))["peak_bytes"].get<uint64_t>();
  const Outcome outcome = reprise(with_program(
      {"run", "--device", "sim", "--budget", std::to_string(peak * 3 / 100), "-o", file("run.html")}, "500"));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_LT(outcome.exit_code, 128) << "killed by a signal";
  EXPECT_TRUE(has_cause(outcome.err, Cause::call_above_budget));
}

// The recording goes on while the plan is made: two figures of one loop, and each command says which is whose.
TEST_F(Stages, APlanOfTheFirstIterationsIsToldFromOneOfAll) {
  const std::string plan = file("run.plan");
  well(reprise(with_program(
      {"run", "--device", "sim", "--budget", "60%", "--trace", trace(), "--save-plan", plan, "-o", file("run.html")},
      "30")));
  const std::string told = trace() + ": recorded by a run that made a plan of its first iterations";
  EXPECT_TRUE(has(reprise({"plan", trace(), "--budget", "60%", "-o", file("later.plan")}).err, told));
  EXPECT_TRUE(has(reprise({"simulate", trace(), "--budget", "60%", "--no-fluid"}).err, told));
  EXPECT_EQ(reprise({"plan", trace(), "--budget", "60%", "--quiet", "-o", file("q.plan")}).err, "");
  const std::string other =
      "The plan was made with other kernel times than the recording has as a whole: an iteration ";
  const auto page_of = [&](const std::string& of) {
    well(reprise({"report", trace(), of, "-o", file("a.html")}));
    return read_file(file("a.html"));
  };
  const auto computing = [&](const std::string& of) {
    const std::string text = reprise({"dump", of}).out;
    return std::strtoull(text.c_str() + text.find("compute_ns=") + 11, nullptr, 10);
  };
  const bool differs = computing(plan) != computing(file("later.plan"));
  EXPECT_EQ(page_of(plan).find(other) != std::string::npos, differs);
  EXPECT_EQ(page_of(plan).find("with kernel times as recorded until the plan was made") != std::string::npos, differs);
  EXPECT_FALSE(has(page_of(file("later.plan")), other));
}

// What `record` makes is of one kind.
TEST_F(Stages, OfARecordingWithoutAPlanNothingIsSaidOfTimes) {
  record();
  EXPECT_FALSE(has(reprise({"plan", trace(), "--budget", "60%", "-o", file("a.plan")}).err, "kernel times"));
}

}  // namespace
}  // namespace reprise::e2e

// How `reprise replay` ends: as `run` does, with what it took, how much was planned and where there is more to see; and
// why, where nothing was.
#include <cmath>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class Replays : public InScratch {
 protected:
  void SetUp() override {
    well(reprise({"record", "--device", "sim", "-o", file("a.trace")}, trainer_));
    well(reprise({"plan", file("a.trace"), "--budget", "60%", "-o", plan_}));
  }
  Outcome replay(const Words& program, const Words& more = {}, const Environment& variables = {}) const {
    Words words = joined({"replay", "--device", "sim", "--plan", plan_}, more);
    return reprise(words, program, variables);
  }
  // What is proposed behind a summary.
  std::string next() const { return "; next: reprise report " + plan_ + " " + file("a.run") + "\n"; }

  const std::string plan_ = file("a.plan");
  const Words trainer_ = small_trainer(10);
};

TEST_F(Replays, OneLineSaysWhatCameOfThePlan) {
  const Outcome outcome = replay(trainer_);
  EXPECT_EQ(outcome.out, run(trainer_, simulated_device()).out);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(begins(outcome.err, "reprise: peak "));
  EXPECT_TRUE(has(outcome.err, " instead of "));
  EXPECT_TRUE(has(outcome.err, " per iteration (iteration "));
  EXPECT_TRUE(has(outcome.err, " of 10 iterations planned; for a report: --run-log FILE\n"));
}

TEST_F(Replays, WhatIsProposedMakesThePage) {
  EXPECT_TRUE(has(replay(trainer_, {"--run-log", file("a.run")}).err, " iterations planned" + next()));
  for (const char* page : {"a.html", "a-2.html"}) {
    EXPECT_TRUE(has(reprise({"report", plan_, file("a.run")}).err, "; report: " + file(page) + "\n"));
    EXPECT_GT(std::filesystem::file_size(file(page)), 0u);
  }
}

// One alone may be an outlier: the line is of the one that is closest to the median.
TEST_F(Replays, SeveralIterationsAreMeasuredAndTheMostOrdinaryOneIsShown) {
  const Outcome kept = replay(small_trainer(14), {"--run-log", file("a.run")});
  const auto log = read_run_log(file("a.run"));
  const auto wall_of = [&log](uint64_t iteration) {
    for (const auto& line : lines_of(log, "iteration")) {
      if (line.at("index") == iteration) return line.at("wall_ns").get<double>();
    }
    return 0.0;
  };
  std::vector<double> walls;
  for (const auto& line : lines_of(log, "iteration")) {
    if (line.at("mode") == "planned") walls.push_back(line.at("wall_ns"));
  }
  ASSERT_GE(walls.size(), 10u);
  std::sort(walls.begin(), walls.end());
  const double median = (walls[(walls.size() - 1) / 2] + walls[walls.size() / 2]) / 2;
  const auto measured = lines_of(log, "overlap");
  ASSERT_GE(measured.size(), 2u);
  const size_t at = kept.err.find(" (iteration ");
  ASSERT_NE(at, std::string::npos) << kept.err;
  const double shown = std::abs(wall_of(std::stoull(kept.err.substr(at + 12))) - median);
  for (const auto& one : measured) EXPECT_LE(shown, std::abs(wall_of(one.at("iteration")) - median) + 1) << one;
}

// The third planned iteration is the first that is looked at closely, and here the last, of which the end of the loop
// leaves out a call.
TEST_F(Replays, OnlyWholeIterationsAreMeasured) {
  const Outcome kept = replay(small_trainer(3), {"--run-log", file("a.run")});
  ASSERT_TRUE(has(kept.err, "3 of 3 iterations planned"));
  const auto log = read_run_log(file("a.run"));
  ASSERT_EQ(lines_of(log, "left_out").size(), 1u);
  EXPECT_EQ(lines_of(log, "activity").size() + lines_of(log, "overlap").size(), 0u)
      << "of iteration " << lines_of(log, "left_out").front();
  EXPECT_FALSE(has(kept.err, " (iteration "));
  replay(small_trainer(6), {"--run-log", file("a.run")});
  EXPECT_GE(lines_of(read_run_log(file("a.run")), "overlap").size(), 1u) << "a whole one is measured";
}

TEST_F(Replays, WhyNothingWasPlannedIsSaidOnce) {
  const Outcome other = replay(small_trainer(10, {"--batch", "2"}), {"--run-log", file("a.run")});
  const size_t why = other.err.find("the plan never applied: no iteration began that the plan was made of");
  const size_t summary = other.err.find("\nreprise: peak ");
  ASSERT_NE(why, std::string::npos) << other.err;
  ASSERT_NE(summary, std::string::npos) << other.err;
  EXPECT_LT(why, summary);
  EXPECT_FALSE(has(other.err.substr(summary), "its first call")) << "told twice: " << other.err;
  EXPECT_TRUE(has(other.err, ", no iteration planned" + next()));
}

TEST_F(Replays, AShellThatFailsBehindItsProgramIsToldAsThat) {
  Words failing = joined({"/bin/bash", "-c", "\"$@\"; exit 3", "bash"}, trainer_);
  const Outcome outcome = replay(failing);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_TRUE(has(outcome.err, "planned; the command that started it ended with exit code 3; "));
  EXPECT_FALSE(has(outcome.err, "the program ended"));
}

// Why is said while the program runs; nothing is managed on demand either.
TEST_F(Replays, AProgramThatCannotBeManagedIsNotSaidToHaveLeftThePlan) {
  const Outcome outcome = well(replay(trainer_, {}, {{"REPRISE_SIM_FAIL", "shim.cuMemAddressReserve=2"}}));
  EXPECT_TRUE(has_cause(outcome.err, Cause::not_managed, {{"error", "2"}, {"problem", ""}}));
  EXPECT_FALSE(has(outcome.err, "never applied"));
  EXPECT_TRUE(has(outcome.err, "without a budget: device memory could not be managed; for a report: "));
}

TEST_F(Replays, WithoutAPlaceForARunLogThatIsSaid) {
  const Outcome outcome = well(replay(trainer_, {}, {{"TMPDIR", file("no/such/folder")}}));
  EXPECT_TRUE(has(outcome.err, "; set TMPDIR to a writable folder: so what came of the plan is not known\n"));
}

}  // namespace
}  // namespace reprise::e2e

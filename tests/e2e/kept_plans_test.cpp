// Plans outlive their run: the second run of a program goes by them from its first iteration on, and prints the same.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class KeptPlansTest : public InScratch {
 protected:
  struct Managed {
    Outcome outcome;
    std::vector<json> log;
  };

  // By the launcher, as a user runs it, with a folder of facts and plans of this test's own.
  Managed managed(const Words& program, const std::string& budget, const Words& options = {},
                  const Environment& more = {}) const {
    Words words = {built("bin/reprise"),
                   "run",
                   "--device",
                   "sim",
                   "--framework",
                   "none",
                   "--quiet",
                   "--budget",
                   budget,
                   "--run-log",
                   file("log"),
                   "-o",
                   file("report.html")};
    words = joined(joined(words, options), {"--"});
    const Environment here = {
        {"REPRISE_FACTS", file("cache")}, {"REPRISE_KEEP_PLANS", ""}, {"REPRISE_WAIT_FOR_PLAN", "1"}};
    Managed run_;
    run_.outcome = run(joined(words, program), launching(merged(here, more)));
    run_.log = read_run_log(file("log"));
    return run_;
  }
  static uint64_t number(const Managed& run, const char* key) {
    return lines_of(run.log, "end").at(0)[key].get<uint64_t>();
  }
  static size_t kept(const Managed& run) {
    size_t count = 0;
    for (const json& plan : lines_of(run.log, "plan")) count += plan.contains("kept") ? 1u : 0u;
    return count;
  }
  static size_t made(const Managed& run) { return lines_of(run.log, "plan").size() - kept(run); }
  std::vector<std::string> files() const {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(file("cache") + "/plans", error)) {
      found.push_back(entry.path());
    }
    return found;
  }
};

Words chargpt(int steps, const Words& more = {}) {
  return joined({built("bin/chargpt"), "--layers", "3", "--width", "64", "--heads", "4", "--context", "32", "--batch",
                 "8", "--steps", std::to_string(steps), "--seed", "1"},
                more);
}

Words phases(const std::string& kind, int rounds) {
  return {built("bin/phases_program"), built("bin/hash_kernels.cubin"), kind, std::to_string(rounds)};
}

TEST_F(KeptPlansTest, TheSecondRunIsPlannedFromItsFirstIteration) {
  const std::string plain = well(run(chargpt(12), simulated_device())).out;
  for (const char* budget : {"60%", "4MiB"}) {
    const Managed first = managed(chargpt(12), budget);
    EXPECT_EQ(first.outcome.out, plain) << first.outcome.err;
    EXPECT_EQ(kept(first), 0u) << "of another budget";
    ASSERT_GE(made(first), 1u);
    const Managed second = managed(chargpt(12), budget);
    EXPECT_EQ(second.outcome.out, plain) << second.outcome.err;
    EXPECT_EQ(kept(second), 1u);
    EXPECT_EQ(made(second), 0u);
    EXPECT_GE(number(second, "iterations_planned"), 11u);
    EXPECT_GT(number(second, "iterations_planned"), number(first, "iterations_planned"));
    EXPECT_LE(number(second, "peak_used_bytes"), number(second, "budget_bytes"));
    EXPECT_EQ(number(second, "budget_bytes"), number(first, "budget_bytes"));
  }
}

TEST_F(KeptPlansTest, SoItIsWithSeveral) {
  const std::string plain = well(run(phases("evaluate", 6), simulated_device())).out;
  const Managed first = managed(phases("evaluate", 6), "60%");
  EXPECT_EQ(first.outcome.out, plain) << first.outcome.err;
  ASSERT_GE(made(first), 2u);
  const Managed second = managed(phases("evaluate", 6), "60%");
  EXPECT_EQ(second.outcome.out, plain) << second.outcome.err;
  EXPECT_GE(kept(second), 1u);
  EXPECT_GE(number(second, "iterations_planned"), number(first, "iterations_planned"));
  EXPECT_LE(number(second, "iterations_on_demand"), 1u);
}

TEST_F(KeptPlansTest, AProgramOfOtherSizesIsPlannedAnew) {
  well(managed(chargpt(12), "60%").outcome);
  const Words other = chargpt(12, {"--batch", "6"});
  const std::string plain = well(run(other, simulated_device())).out;
  const Managed changed = managed(other, "60%");
  EXPECT_EQ(changed.outcome.out, plain) << changed.outcome.err;
  EXPECT_EQ(made(changed), 1u);
  EXPECT_GT(number(changed, "iterations_planned"), 2u);
  EXPECT_LE(number(changed, "peak_used_bytes"), number(changed, "budget_bytes"));
  const Managed again = managed(other, "60%");
  EXPECT_EQ(made(again), 0u);
  EXPECT_GE(number(again, "iterations_planned"), 11u);
}

TEST_F(KeptPlansTest, WithoutMemoryNothingIsKeptNorUsed) {
  const Managed first = managed(chargpt(12), "60%", {"--no-memory"});
  EXPECT_EQ(made(first), 1u);
  EXPECT_EQ(files(), std::vector<std::string>());
  well(managed(chargpt(12), "60%").outcome);
  EXPECT_EQ(files().size(), 1u);
  EXPECT_EQ(kept(managed(chargpt(12), "60%", {"--no-memory"})), 0u);
  EXPECT_EQ(kept(managed(chargpt(12), "60%", {}, {{"REPRISE_KEEP_PLANS", "0"}})), 0u);
  EXPECT_EQ(kept(managed(chargpt(12), "60%")), 1u);
}

TEST_F(KeptPlansTest, AFileThatIsNoPlanCostsALine) {
  well(managed(chargpt(12), "60%").outcome);
  ASSERT_EQ(files().size(), 1u);
  std::ofstream(files()[0], std::ios::trunc) << "no plan";
  const Managed second = managed(chargpt(12), "60%");
  EXPECT_EQ(second.outcome.exit_code, 0);
  EXPECT_NE(second.outcome.err.find(files()[0]), std::string::npos) << second.outcome.err;
  EXPECT_EQ(kept(second), 0u);
  EXPECT_EQ(made(second), 1u);
  EXPECT_EQ(kept(managed(chargpt(12), "60%")), 1u) << "it was replaced";
}

}  // namespace
}  // namespace reprise::e2e

// The default: what kernels' machine code proves decides what a plan may do, in a first run, with nothing kept and no
// option set. Skipped where nvdisasm is not there.
#include "analyzer/proofs/disassembler.h"
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

// Slow links, so that recompute pays, and times that do not depend on how busy the machine is.
const Environment kSlow = {
    {"REPRISE_SIM_H2D", "64MB"}, {"REPRISE_SIM_D2H", "64MB"}, {"REPRISE_SIM_MEMORY_RATE", "1600MB"}};

Words trainer() {
  return {built("bin/chargpt"),
          "--layers",
          "4",
          "--width",
          "64",
          "--heads",
          "4",
          "--context",
          "32",
          "--batch",
          "8",
          "--steps",
          "10",
          "--seed",
          "3"};
}

class Proven : public testing::Test {
 protected:
  void SetUp() override {
    const char* const set = std::getenv("REPRISE_NVDISASM");
    named_ = set != nullptr ? set : built("../nvdisasm/nvdisasm");  // that of tools/setup
    if (!code::find_disassembler(named_).ok()) GTEST_SKIP() << "no nvdisasm here";
  }

  // Under the preloaded library, with an empty cache of facts.
  Outcome managed(const Environment& more) {
    const std::string run = scratch_.path("run" + std::to_string(++runs_));
    const Environment ours = {{"REPRISE_NVDISASM", named_},
                              {"REPRISE_FACTS", run + ".facts"},
                              {"REPRISE_RUN_LOG", run},
                              {"REPRISE_WAIT_FOR_PLAN", "1"},
                              {"REPRISE_POLICY", "reprise"}};
    Outcome outcome = e2e::run(trainer(), merged(merged(preloaded("50%"), kSlow), merged(ours, more)));
    log_ = read_run_log(run);
    return outcome;
  }
  Outcome plain() { return e2e::run(trainer(), merged(simulated_device(), kSlow)); }

  // The last one that was taken.
  json plan() const {
    const auto plans = lines_of(log_, "plan");
    return plans.empty() ? json() : plans.back();
  }
  // Of planned iterations behind the first two.
  int64_t most(const char* number) const {
    int64_t most = -1;
    int planned = 0;
    for (const json& line : lines_of(log_, "iteration")) {
      if (line["mode"] == "planned" && ++planned > 2) most = std::max(most, line[number].get<int64_t>());
    }
    return most;
  }

  std::string named_;
  Scratch scratch_;
  std::vector<json> log_;
  int runs_ = 0;
};

TEST_F(Proven, AFirstRunMapsNothingAndRecomputes) {
  const Outcome expected = plain();
  const Outcome got = managed({});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(got.out, expected.out);
  EXPECT_EQ(plan()["audited_launches"], plan()["launches"]);
  EXPECT_EQ(most("vmm_calls"), 0);
  EXPECT_GT(most("repeated_launches"), 0);
}

TEST_F(Proven, IsStrictWhereNoCodeIsRead) {
  const Outcome expected = plain();
  for (const Environment& more : {Environment{{"REPRISE_NVDISASM", "none"}}, {{"REPRISE_SAFETY", "strict"}}}) {
    const Outcome got = managed(more);
    EXPECT_EQ(got.out, expected.out) << got.err;
    EXPECT_EQ(plan()["audited_launches"], 0);
    EXPECT_GT(most("vmm_calls"), 0);
    EXPECT_EQ(most("repeated_launches"), 0);
  }
}

}  // namespace
}  // namespace reprise::e2e

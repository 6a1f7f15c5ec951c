// REPRISE_SIM_HASH_LOG and tools/lab/first-difference: two runs of one program have equal launches, in three processes
// as under a budget, where they are issued out of order; another program's first launch that differs is named.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class HashLog : public InScratch {
 protected:
  void record(const std::string& log, const Environment& environment, const std::string& seed,
              const std::string& iterations = "8") {
    well(run(
        {built("bin/random_program"), built("bin/hash_kernels.cubin"), seed, iterations, "--async", "--streams", "3"},
        merged(environment, {{"REPRISE_SIM_HASH_LOG", file(log)},
                             {"REPRISE_SIM_STATS", file("stats")},
                             {"REPRISE_WAIT_FOR_PLAN", "1"}})));
  }
  Outcome compare(const std::string& a, const std::string& b) {
    return run({REPRISE_FIRST_DIFFERENCE, file(a), file(b)});
  }
};

TEST_F(HashLog, IsTheSameInEachProcessAndUnderABudget) {
  record("plain", simulated_device(), "3");
  const auto stats = read_stats(file("stats"));
  EXPECT_GT(stats["hashed_parameter_bytes"], 0);
  EXPECT_GE(stats["parameter_bytes"], stats["hashed_parameter_bytes"]);
  record("again", simulated_device(), "3");
  record("third", simulated_device(), "3");
  for (const char* other : {"again", "third"}) {
    EXPECT_TRUE(has(well(compare("plain", other)).out, " launches, all equal"));
  }
  for (const char* budget : {"100%", "60%"}) {
    record(budget, preloaded(budget), "3");
    well(compare("plain", budget));
  }
}

TEST_F(HashLog, NamesTheFirstLaunchThatDiffers) {
  record("plain", simulated_device(), "3");
  record("seed", simulated_device(), "4");
  record("longer", simulated_device(), "3", "9");
  const Outcome seed = compare("plain", "seed");
  EXPECT_EQ(seed.exit_code, 1);
  EXPECT_TRUE(begins(seed.out, "launch 1 (line "));
  const Outcome longer = compare("plain", "longer");
  EXPECT_EQ(longer.exit_code, 1);
  EXPECT_TRUE(begins(longer.out, "equal up to launch "));
}

TEST_F(HashLog, WhatIsNoLogIsSaid) {
  const Outcome missing = compare("missing", "missing");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_TRUE(has(missing.err, "cannot be read"));
}

}  // namespace
}  // namespace reprise::e2e

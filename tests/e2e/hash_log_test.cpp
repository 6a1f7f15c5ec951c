// REPRISE_SIM_HASH_LOG and tools/lab/first-difference: two runs of one program have equal launches, in three processes
// as under a budget, where they are issued out of order; another program's first launch that differs is named.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

class HashLog : public testing::Test {
 protected:
  void record(const std::string& log, const Environment& environment, const std::string& seed,
              const std::string& iterations = "8") {
    const Outcome ran = run(
        {built("bin/random_program"), built("bin/hash_kernels.cubin"), seed, iterations, "--async", "--streams", "3"},
        merged(environment, {{"REPRISE_SIM_HASH_LOG", scratch_.path(log)},
                             {"REPRISE_SIM_STATS", scratch_.path("stats")},
                             {"REPRISE_WAIT_FOR_PLAN", "1"}}));
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
  }
  Outcome compare(const std::string& a, const std::string& b) {
    return run({REPRISE_FIRST_DIFFERENCE, scratch_.path(a), scratch_.path(b)});
  }

  const Scratch scratch_;
};

TEST_F(HashLog, IsTheSameInEachProcessAndUnderABudget) {
  record("plain", simulated_device(), "3");
  const auto stats = read_stats(scratch_.path("stats"));
  EXPECT_GT(stats["hashed_parameter_bytes"], 0);
  EXPECT_GE(stats["parameter_bytes"], stats["hashed_parameter_bytes"]);
  record("again", simulated_device(), "3");
  record("third", simulated_device(), "3");
  for (const char* other : {"again", "third"}) {
    const Outcome outcome = compare("plain", other);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
    EXPECT_NE(outcome.out.find(" launches, all equal"), std::string::npos) << outcome.out;
  }
  for (const char* budget : {"100%", "60%"}) {
    record(budget, preloaded(budget), "3");
    const Outcome outcome = compare("plain", budget);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  }
}

TEST_F(HashLog, NamesTheFirstLaunchThatDiffers) {
  record("plain", simulated_device(), "3");
  record("seed", simulated_device(), "4");
  record("longer", simulated_device(), "3", "9");
  const Outcome seed = compare("plain", "seed");
  EXPECT_EQ(seed.exit_code, 1);
  EXPECT_EQ(seed.out.find("launch 1 (line "), 0u) << seed.out;
  const Outcome longer = compare("plain", "longer");
  EXPECT_EQ(longer.exit_code, 1);
  EXPECT_EQ(longer.out.find("equal up to launch "), 0u) << longer.out;
}

TEST_F(HashLog, WhatIsNoLogIsSaid) {
  const Outcome missing = compare("missing", "missing");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("cannot be read"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace reprise::e2e

// Sixteen host threads on the few processors that there are: each sees its own bytes, within a budget as without one,
// and all come to their end. REPRISE_TEST_THREADS_SECONDS=60 is the long form.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

int seconds() {
  const char* const asked = std::getenv("REPRISE_TEST_THREADS_SECONDS");
  return asked == nullptr ? 2 : std::atoi(asked);
}

Outcome run_threads(int milliseconds, const Environment& environment) {
  return run({built("bin/threads_program"), built("bin/hash_kernels.cubin"), "16", std::to_string(milliseconds)},
             environment, seconds() + 120);
}

class Threads : public testing::TestWithParam<std::string> {};

TEST_P(Threads, SeeTheirOwnBytesWithinABudget) {
  const Outcome plain = well(run_threads(0, simulated_device()));
  const Scratch scratch;
  const Outcome managed =
      run_threads(seconds() * 1000,
                  merged(preloaded("60%"), {{"REPRISE_RUN_LOG", scratch.path("log")}, {"REPRISE_SAFETY", GetParam()}}));
  EXPECT_EQ(managed.exit_code, 0) << managed.err;
  EXPECT_EQ(managed.out, plain.out) << managed.err;
  const auto ends = lines_of(read_run_log(scratch.path("log")), "end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_GT(ends[0]["offload_bytes"].get<uint64_t>(), 0u) << "the budget was no limit";
}

INSTANTIATE_TEST_SUITE_P(Safety, Threads, testing::Values("strict", "trusted"));

// By how many launches of others went by while each pair of calls was served: 34 000 where an allocation waited for
// all.
TEST(Flood, HoldsUpNoAllocation) {
  const Outcome managed =
      run({built("bin/reproductions/flooding_launches")},
          merged(preloaded("16MiB"), {{"REPRISE_SIM_TWINS", built("bin/reproductions/twins.so")}}), 120);
  EXPECT_EQ(managed.exit_code, 0) << managed.err;
  EXPECT_LT(std::atoi(managed.err.c_str()), 1000) << managed.err;
}

}  // namespace
}  // namespace reprise::e2e

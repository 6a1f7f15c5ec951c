// Kernels that depend on each other through a __device__ variable alone keep their order under a plan.
#include "tests/e2e/harness.h"

namespace reprise::e2e {
namespace {

TEST(CarryingProgram, AVariableThatTheHostNeverNamesKeepsItsOrder) {
  const Scratch scratch;
  const Words argv = {built("bin/carrying_program"), "16"};
  const Outcome plain = well(run(argv, simulated_device()));
  const Environment slow = {{"REPRISE_SIM_H2D", "1GiB"}, {"REPRISE_SIM_D2H", "1GiB"}};
  const Outcome managed =
      well(run(argv, merged(merged(preloaded("50%"), slow),
                            {{"REPRISE_RUN_LOG", scratch.path("log")}, {"REPRISE_WAIT_FOR_PLAN", "1"}})));
  EXPECT_EQ(managed.out, plain.out) << managed.err;
  const auto ends = lines_of(read_run_log(scratch.path("log")), "end");
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_GT(ends.back()["iterations_planned"], 0) << "the plan was never enforced: " << managed.err;
}

}  // namespace
}  // namespace reprise::e2e

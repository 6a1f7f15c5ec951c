// Launches that the driver refuses are named: what calls them may swallow the error.
#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class RefusedLaunch : public LauncherTest {
 protected:
  Outcome ran(const std::string& failing) const {
    return reprise({"run", "--device", "sim", "--budget", "100MiB", "--run-log", log_, "-o", file("a.html")},
                   trainer("3"), {{"REPRISE_SIM_FAIL", failing}});
  }
  const std::string log_ = file("a.run");
};

TEST_F(RefusedLaunch, ForWantOfMemoryItIsToldAtOnce) {
  const Outcome outcome = ran("launch-of-gelu=2");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const size_t told = outcome.err.find("_Z4geluPKfPfi was not launched: the driver is out of memory");
  ASSERT_NE(told, std::string::npos) << outcome.err;
  EXPECT_LT(told, outcome.err.find("out of memory", told + 100)) << "before the program says what it makes of it";
  EXPECT_FALSE(has(outcome.err, "has refused a launch before")) << "once: ";
  EXPECT_TRUE(has(lines_of(read_run_log(log_), "warning").at(0).at("message"), "gelu"));
}

// An error that the program would have without Reprise, too, stands behind its own, and only there.
TEST_F(RefusedLaunch, ForAnotherErrorTheFirstIsNamedBehindOneOfTheProgram) {
  const Outcome outcome = ran("launch-of-gelu=701");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(
      has(outcome.err, "exit code 1, and the driver has refused a launch before: _Z4geluPKfPfi (CUDA error 701)"))
      << outcome.err;
}

}  // namespace
}  // namespace reprise::e2e

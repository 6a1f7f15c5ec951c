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
  const std::string first = outcome.err.substr(0, outcome.err.find('\n'));
  EXPECT_TRUE(has_cause(first, Cause::launch_out_of_memory, {{"kernel", "gelu"}}))
      << "before the program says what it makes of it: " << outcome.err;
  EXPECT_FALSE(has_cause(outcome.err, Cause::launch_was_refused)) << "once: ";
  const json warning = lines_of(read_run_log(log_), "warning").at(0);
  EXPECT_EQ(warning.at("cause"), "launch_out_of_memory");
  EXPECT_EQ(warning.at("error"), 2);
  EXPECT_FALSE(has(outcome.err + warning.dump(), "_Z")) << "a kernel is called what people call it";
}

// An error that the program would have without Reprise, too, stands behind its own, and only there.
TEST_F(RefusedLaunch, ForAnotherErrorTheFirstIsNamedBehindOneOfTheProgram) {
  const Outcome outcome = ran("launch-of-gelu=701");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_TRUE(
      has_cause(outcome.err, Cause::launch_was_refused, {{"exit_code", "1"}, {"launch", "gelu (CUDA error 701)"}}));
}

}  // namespace
}  // namespace reprise::e2e

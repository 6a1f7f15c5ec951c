// Launches that the driver refuses are named: what calls them may swallow the error.
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/commands/launcher_test.h"

namespace reprise::e2e {
namespace {

class RefusedLaunch : public LauncherTest {
 protected:
  Outcome ran(const std::string& failing) const {
    std::vector<std::string> words = {
        built("bin/reprise"),    "run", "--device", "sim", "--budget", "100MiB", "--run-log", log_, "-o",
        scratch_.path("a.html"), "--"};
    for (const std::string& word : trainer("3")) words.push_back(word);
    Environment environment = merged(simulated_device(), {{"REPRISE_SIM_FAIL", failing}});
    environment.erase("LD_LIBRARY_PATH");
    return run(words, environment);
  }
  Scratch scratch_;
  const std::string log_ = scratch_.path("a.run");
};

TEST_F(RefusedLaunch, ForWantOfMemoryItIsToldAtOnce) {
  const Outcome outcome = ran("launch-of-gelu=2");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const size_t told = outcome.err.find("_Z4geluPKfPfi was not launched: the driver is out of memory");
  ASSERT_NE(told, std::string::npos) << outcome.err;
  EXPECT_LT(told, outcome.err.find("out of memory", told + 100)) << "before the program says what it makes of it";
  EXPECT_FALSE(has(outcome.err, "has refused a launch before")) << "once: " << outcome.err;
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

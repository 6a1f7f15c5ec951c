#include "tools/lab/probe/subjects/subprocess.h"

#include "tests/support/test.h"
#include "tools/lab/probe/measure/limit.h"

namespace reprise::probe {
namespace {

TEST(Subprocess, CapturesOutputAndExitCode) {
  const auto outcome = good(run_command({{"/bin/sh", "-c", "echo out; echo problem >&2; exit 7"}, {}, 10}));
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.output, "out\n");
  EXPECT_EQ(outcome.error_output, "problem\n");
}

TEST(Subprocess, SetsAndRemovesVariables) {
  setenv("REPRISE_TEST_GONE", "here", 1);
  const auto outcome = run_command({{"/bin/sh", "-c", "echo ${REPRISE_TEST_SET-none} ${REPRISE_TEST_GONE-none}"},
                                    {{"REPRISE_TEST_SET", "yes"}, {"REPRISE_TEST_GONE", ""}},
                                    10});
  unsetenv("REPRISE_TEST_GONE");
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.value().output, "yes none\n");
}

TEST(Subprocess, EndsWhatTakesTooLong) {
  const Stopwatch watch;
  const auto outcome = good(run_command({{"/bin/sh", "-c", "sleep 100 & wait"}, {}, 0.2}));
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.exit_code, 128 + 15);
  EXPECT_LT(watch.nanoseconds(), 50e9);
}

TEST(Subprocess, DoesNotWaitForWhatAProgramLeavesBehind) {
  const Stopwatch watch;
  const auto outcome = good(run_command({{"/bin/sh", "-c", "sleep 30 & echo done"}, {}, 60}));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "done\n");
  EXPECT_FALSE(outcome.timed_out);
  EXPECT_LT(watch.nanoseconds(), 20e9);
}

TEST(Subprocess, ASignalIsToldFromAnExit) {
  const auto outcome = good(run_command({{"/bin/sh", "-c", "kill -11 $$"}, {}, 10}));
  EXPECT_EQ(outcome.exit_code, 128 + 11);
  EXPECT_FALSE(outcome.timed_out);
}

TEST(Subprocess, AProgramThatIsNotThereIsAnError) { EXPECT_FALSE(run_command({{"/nonexistent/program"}, {}, 1}).ok()); }

TEST(Subprocess, LastLine) {
  EXPECT_EQ(last_line("a\nb\n\n  \n"), "b");
  EXPECT_EQ(last_line(""), "");
}

}  // namespace
}  // namespace reprise::probe

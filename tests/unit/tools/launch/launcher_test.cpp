// What is said where the system does not start a program.
#include "tools/launch/launcher.h"

#include <sys/resource.h>

#include "tests/support/test.h"

namespace reprise::tools {
namespace {

// The program is not to blame, and nothing is wrong with the command line.
TEST(Launcher, TooFewOpenFilesAreTheLimits) {
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int free = dup(0);
  ASSERT_GE(free, 0);
  close(free);
  const struct rlimit none { static_cast<rlim_t>(free), before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Outcome> outcome = launch({{"/bin/true"}, {}, {}});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), StatusCode::io_error);
  EXPECT_EQ(outcome.status().message(), "/bin/true: cannot be started: the limit of open files, " +
                                            std::to_string(free) + ", is too low; raise it (ulimit -n)");
}

}  // namespace
}  // namespace reprise::tools

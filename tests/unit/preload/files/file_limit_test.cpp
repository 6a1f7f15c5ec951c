// A write beyond the limit of files fails, and does not end the process.
#include "preload/files/file_limit.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "tests/support/test.h"

namespace reprise {
namespace {

// 1: it went well; 2: not EFBIG.
int grow_beyond_limit() {
  rlimit limit{4096, 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  const int file = memfd_create("grows", MFD_CLOEXEC);
  {
    const FileLimitGuard guard;
    if (ftruncate(file, 8192) == 0) return 1;
  }
  return errno == EFBIG ? 0 : 2;
}

TEST(FileLimit, ExceededIsAnErrorInTheGuardsScope) {
  EXPECT_EXIT(_exit(grow_beyond_limit()), testing::ExitedWithCode(0), "");
}

TEST(FileLimit, WithoutTheGuardTheProcessEnds) {
  EXPECT_EXIT(
      {
        (void)grow_beyond_limit();  // what is behind the guard is as before
        const int file = memfd_create("grows", MFD_CLOEXEC);
        _exit(ftruncate(file, 8192) == 0 ? 1 : 2);
      },
      testing::KilledBySignal(SIGXFSZ), "");
}

}  // namespace
}  // namespace reprise

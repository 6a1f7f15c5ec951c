// What a file may hold (ulimit -f): a write beyond it answers EFBIG, and does not end the program with SIGXFSZ, which
// without us would not have written. Callers: the run log, the simulated device's memory.
#pragma once
#include <cerrno>
#include <csignal>
#include <ctime>

namespace reprise {

// In its scope, for this thread alone. errno is left as it is.
class FileLimitGuard {
 public:
  FileLimitGuard() noexcept {
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~FileLimitGuard() {
    const int error = errno;
    const timespec now{};
    while (!was_pending_ && sigtimedwait(&signal_, nullptr, &now) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  FileLimitGuard(const FileLimitGuard&) = delete;
  FileLimitGuard& operator=(const FileLimitGuard&) = delete;

 private:
  sigset_t signal_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace reprise

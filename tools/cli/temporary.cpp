#include "tools/cli/temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

namespace reprise::tools {
namespace {

constexpr std::string_view kPrefix = "reprise-";
constexpr std::string_view kPattern = "XXXXXX";
constexpr int kEndSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
// A folder that was just made may not be locked yet.
constexpr time_t kLeastAge = 60;

// What the handler reads: plain memory, and a flag that is set last.
struct Slot {
  std::atomic<bool> used{false};
  std::array<char, 1024> path{};
};
std::array<Slot, 16> slots;
std::atomic<pid_t> owner{0};  // a child between fork and exec has our handlers, too

// Of a folder, its files; no folders below it. Only system calls: this runs in a signal handler.
void remove_entries(const char* path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  struct Entry {
    ino64_t inode;
    off64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[1];
  };
  alignas(8) static std::array<char, 16384> entries;
  for (long got = 0; (got = syscall(SYS_getdents64, folder, entries.data(), entries.size())) > 0;) {
    for (long at = 0; at < got;) {
      const auto* const entry = reinterpret_cast<const Entry*>(entries.data() + at);
      unlinkat(folder, entry->name, 0);
      at += entry->bytes;
    }
  }
  close(folder);
}

void remove_and_die(int number) {
  if (getpid() == owner.load()) {
    for (const Slot& slot : slots) {
      if (!slot.used.load()) continue;
      if (unlink(slot.path.data()) == 0) continue;
      remove_entries(slot.path.data());
      rmdir(slot.path.data());
    }
  }
  signal(number, SIG_DFL);
  raise(number);
}

// Signals that the user ignores (nohup) stay ignored.
void watch_signals() {
  if (owner.exchange(getpid()) == getpid()) return;
  for (const int number : kEndSignals) {
    struct sigaction now {};
    if (sigaction(number, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = remove_and_die;
    sigfillset(&ours.sa_mask);
    sigaction(number, &ours, nullptr);
  }
}

std::string base_folder() {
  const char* const base = std::getenv("TMPDIR");
  return base != nullptr && *base != '\0' ? base : "/tmp";
}

// A folder of ours that no living process has locked: what made it was killed.
bool abandoned(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name.size() != kPrefix.size() + kPattern.size() || name.rfind(kPrefix, 0) != 0) return false;
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != getuid()) return false;
  if ((info.st_mode & 0777) != 0700 || std::time(nullptr) - info.st_mtime < kLeastAge) return false;
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const bool free = flock(folder, LOCK_EX | LOCK_NB) == 0;
  close(folder);
  return free;
}

void remove_abandoned(const std::string& base) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    std::error_code ignored;
    if (abandoned(entry.path())) std::filesystem::remove_all(entry.path(), ignored);
  }
}

constexpr int kAttempts = 100;  // the program dies with the launcher, and may write a last file meanwhile
constexpr timespec kPause{0, 20'000'000};

// Nothing that this process has open stays open because of us, a pipe that somebody reads to its end, say.
void keep_only(int lifeline) {
  const int null = open("/dev/null", O_RDWR);
  for (int file = 0; null >= 0 && file < 3; ++file) dup2(null, file);
  dup2(lifeline, 3);
  closefrom(4);
}

[[noreturn]] void take_care(const std::string& folder, int lifeline) {
  setsid();  // what is sent to the job of the launcher is not meant for us
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  keep_only(lifeline);
  if (chdir("/") != 0) _exit(0);
  char word = 0;
  ssize_t got = 0;
  while ((got = read(3, &word, 1)) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  for (int i = 0; got == 0 && i < kAttempts && std::filesystem::exists(folder, ignored); ++i) {
    std::filesystem::remove_all(folder, ignored);
    nanosleep(&kPause, nullptr);
  }
  _exit(0);
}

}  // namespace

// A process that outlives this one by a moment: it removes a folder when this process ends without having said that
// nothing is left to do, as by SIGKILL. Where there is no process or pipe to be had, the next command does that.
class TemporaryFolder::Caretaker {
 public:
  explicit Caretaker(const std::string& folder);
  ~Caretaker();
  Caretaker(const Caretaker&) = delete;
  Caretaker& operator=(const Caretaker&) = delete;

 private:
  pid_t process_ = -1;
  int lifeline_ = -1;  // ends with this process
};

TemporaryFolder::Caretaker::Caretaker(const std::string& folder) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
  process_ = fork();
  if (process_ == 0) {
    close(ends[1]);
    take_care(folder, ends[0]);
  }
  close(ends[0]);
  lifeline_ = ends[1];
}

TemporaryFolder::Caretaker::~Caretaker() {
  if (lifeline_ < 0) return;
  const char word = 1;
  // No pipe, which would end this process where somebody has killed the other one.
  [[maybe_unused]] const ssize_t told = send(lifeline_, &word, 1, MSG_NOSIGNAL);
  close(lifeline_);
  while (process_ > 0 && waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

RemovedWhenInterrupted::RemovedWhenInterrupted(const std::string& path) {
  watch_signals();
  for (size_t i = 0; i < slots.size() && path.size() < slots[i].path.size(); ++i) {
    if (slots[i].used.load()) continue;
    std::memcpy(slots[i].path.data(), path.c_str(), path.size() + 1);
    slots[i].used.store(true);
    slot_ = static_cast<int>(i);
    return;
  }
}

RemovedWhenInterrupted::~RemovedWhenInterrupted() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].used.store(false);
}

Result<TemporaryFolder> TemporaryFolder::create(bool kept) {
  const std::string base = base_folder();
  remove_abandoned(base);
  std::string path = fmt::format("{}/{}{}{}", base, kPrefix, kept ? "kept-" : "", kPattern);
  if (mkdtemp(path.data()) == nullptr) {
    return Status(errno == ENOENT ? StatusCode::not_found : StatusCode::io_error,
                  fmt::format("{}: {}; set TMPDIR to a writable folder", path, std::strerror(errno)));
  }
  const int lock = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock >= 0) flock(lock, LOCK_EX | LOCK_NB);
  return TemporaryFolder(path, lock, kept);
}

TemporaryFolder::TemporaryFolder(std::string path, int lock, bool kept)
    : path_(std::move(path)),
      removal_(kept ? nullptr : std::make_unique<RemovedWhenInterrupted>(path_)),
      caretaker_(kept ? nullptr : std::make_unique<Caretaker>(path_)),
      lock_(lock),
      kept_(kept) {}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      removal_(std::move(other.removal_)),
      caretaker_(std::move(other.caretaker_)),
      lock_(std::exchange(other.lock_, -1)),
      kept_(other.kept_) {}

TemporaryFolder::~TemporaryFolder() { remove(); }

void TemporaryFolder::remove() {
  std::error_code ignored;
  if (!path_.empty() && !kept_) std::filesystem::remove_all(path_, ignored);
  removal_.reset();
  caretaker_.reset();
  if (lock_ >= 0) close(std::exchange(lock_, -1));
  path_.clear();
}

}  // namespace reprise::tools

#include "preload/facts/replace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

namespace reprise::facts {
namespace {

namespace fs = std::filesystem;
constexpr int kLockAttempts = 1000;
constexpr auto kLockPause = std::chrono::milliseconds(1);

// When a name in this folder changed last, in nanoseconds; 0: unknown.
int64_t last_change(int folder) noexcept {
  struct stat about {};
  if (fstat(folder, &about) != 0) return 0;
  return int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec;
}

std::error_code last_error() { return {errno != 0 ? errno : EIO, std::generic_category()}; }

bool write_all(int file, const std::string& content) noexcept {
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t wrote = write(file, content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

// By /proc: to link the descriptor itself (AT_EMPTY_PATH) is for the privileged only.
bool link_as(int file, const std::string& name) {
  const std::string self = fmt::format("/proc/self/fd/{}", file);
  return linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

enum class Written { nothing, path, fresh };

// A file without a name goes with its process. It gets a name when it is whole: the path itself where nothing is there.
// No call of Linux replaces a name by such a file, so where something is there it is named `fresh` first.
Written write_unnamed(const std::string& path, const std::string& fresh, const std::string& content) {
  const std::string folder = fs::path(path).parent_path().string();
  const int file = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return Written::nothing;
  Written written = Written::nothing;
  if (write_all(file, content)) {
    if (link_as(file, path)) {
      written = Written::path;
    } else if (errno == EEXIST) {
      unlink(fresh.c_str());  // of a process of the same number that was killed
      if (link_as(file, fresh)) written = Written::fresh;
    }
  }
  close(file);
  return written;
}

// Where the file system knows no files without names, or /proc is not there.
std::error_code write_named(const std::string& fresh, const std::string& content) {
  const int file = open(fresh.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return last_error();
  std::error_code error;
  if (!write_all(file, content)) error = last_error();
  if (close(file) != 0 && !error) error = last_error();
  return error;
}

bool is_left(const fs::path& path, const std::string& ending) {
  const std::string number = path.extension().string();
  return path.stem().extension() == ending && number.size() > 1 &&
         std::all_of(number.begin() + 1, number.end(), [](char digit) { return digit >= '0' && digit <= '9'; });
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  int64_t changed = 0;
  for (int attempt = 0; folder_ >= 0 && attempt < kLockAttempts; ++attempt) {
    held_ = flock(folder_, LOCK_EX | LOCK_NB) == 0;
    if (held_ || (errno != EWOULDBLOCK && errno != EINTR)) return;
    if (last_change(folder_) != changed) attempt = 0;  // others write: their turns end
    changed = last_change(folder_);
    std::this_thread::sleep_for(kLockPause);
  }
}

FolderLock::~FolderLock() {
  if (folder_ < 0) return;
  flock(folder_, LOCK_UN);  // a child that was forked meanwhile has the descriptor, too, and would keep the lock
  close(folder_);
}

std::error_code replace_file(const std::string& path, const std::string& content) {
  const std::string fresh = fmt::format("{}.{}", path, getpid());
  const Written written = write_unnamed(path, fresh, content);
  if (written == Written::path) return {};
  std::error_code error;
  if (written == Written::nothing) error = write_named(fresh, content);
  if (!error && std::rename(fresh.c_str(), path.c_str()) != 0) error = last_error();
  if (error) unlink(fresh.c_str());
  return error;
}

// What such a process was about to add is as if it had been killed a little earlier: unknown.
void remove_left(const std::string& folder, const std::string& ending) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (is_left(at->path(), ending)) unlink(at->path().c_str());
  }
}

}  // namespace reprise::facts

#include "preload/files/earlier_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <optional>
#include <string>

namespace reprise {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// A file of /proc, whose size nobody tells before.
std::string content_of(pid_t process, const char* name) {
  std::string content;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%ld/%s", static_cast<long>(process), name);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return content;
  char piece[4096];
  for (ssize_t got = 0; (got = read(file, piece, sizeof piece)) > 0;) content.append(piece, static_cast<size_t>(got));
  close(file);
  return content;
}

struct Process {
  pid_t parent = 0;
  pid_t group = 0;
  uint64_t start_ticks = 0;  // since the system started
};

std::optional<Process> process_of(pid_t number) {
  const std::string text = content_of(number, "stat");
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return {};
  Process process;
  const int read = std::sscanf(text.c_str() + name_end + 1,
                               " %*c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
                               &process.parent, &process.group, &process.start_ticks);
  if (read != 3) return {};
  return process;
}

bool was_started_with(pid_t process, const std::string& setting) {
  const std::string all = content_of(process, "environ");
  for (size_t at = 0; at < all.size(); at = all.find('\0', at) + 1) {
    if (setting == all.c_str() + at) return true;
    if (all.find('\0', at) == std::string::npos) return false;
  }
  return false;
}

int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

// By the clock that files have, and no earlier than it was.
int64_t start_of(const Process& process) {
  const int64_t tick = kSecond / sysconf(_SC_CLK_TCK);
  const int64_t since_system_start = static_cast<int64_t>(process.start_ticks + 1) * tick;
  return now(CLOCK_REALTIME) - (now(CLOCK_BOOTTIME) - since_system_start);
}

bool is_of_command(const struct stat& file, const std::string& setting) {
  std::optional<Process> oldest = process_of(getpid());
  if (!oldest) return false;
  const pid_t group = oldest->group;
  while (oldest->parent > 0) {
    const std::optional<Process> parent = process_of(oldest->parent);
    if (!parent || parent->group != group || !was_started_with(oldest->parent, setting)) break;
    oldest = parent;
  }
  return int64_t{file.st_mtim.tv_sec} * kSecond + file.st_mtim.tv_nsec >= start_of(*oldest);
}

}  // namespace

bool is_of_this_command(const struct stat& file, const char* variable, const char* value) noexcept {
  try {
    return is_of_command(file, std::string(variable).append("=").append(value));
  } catch (...) {  // out of memory
    return false;
  }
}

bool is_started_by_another(const char* variable, const char* value) noexcept {
  try {
    return was_started_with(getppid(), std::string(variable).append("=").append(value));
  } catch (...) {  // out of memory
    return false;
  }
}

}  // namespace reprise

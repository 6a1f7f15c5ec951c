#include "preload/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace reprise {
namespace {
constinit std::atomic<int> current_level{static_cast<int>(LogLevel::warn)};
constinit std::atomic<LogListener> current_listener{nullptr};
}  // namespace

void set_log_listener(LogListener listener) noexcept { current_listener.store(listener, std::memory_order_release); }

void set_log_level(LogLevel level) noexcept { current_level.store(static_cast<int>(level), std::memory_order_relaxed); }

bool log_enabled(LogLevel level) noexcept {
  return static_cast<int>(level) <= current_level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, const char* format, ...) noexcept {
  if (!log_enabled(level)) return;
  const int saved_errno = errno;
  constexpr char kPrefix[] = "reprise: ";
  constexpr size_t kPrefixBytes = sizeof kPrefix - 1;
  char line[1024];
  __builtin_memcpy(line, kPrefix, kPrefixBytes);
  va_list arguments;
  va_start(arguments, format);
  const int wanted = std::vsnprintf(line + kPrefixBytes, sizeof line - kPrefixBytes - 1, format, arguments);
  va_end(arguments);
  if (wanted >= 0) {
    const size_t room = sizeof line - kPrefixBytes - 2;
    const size_t length = kPrefixBytes + (static_cast<size_t>(wanted) < room ? static_cast<size_t>(wanted) : room);
    line[length] = '\n';
    if (write(STDERR_FILENO, line, length + 1) < 0) errno = saved_errno;  // no other place for it
    line[length] = '\0';
    const LogListener listener = current_listener.load(std::memory_order_acquire);
    if (level == LogLevel::warn && listener != nullptr) listener(line + kPrefixBytes);
  }
  errno = saved_errno;
}

}  // namespace reprise

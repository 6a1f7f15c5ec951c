// Writes what happens in a run, as JSON lines for the report: REPRISE_RUN_LOG. Lines are built in memory and written in
// large pieces, at the ends of iterations. Callers: the enforcer and the dispatcher, off the hot path. Never fails
// loudly.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

namespace reprise::replay {

// One line: {"kind":"...",...}. Text is escaped.
class RunLogLine {
 public:
  explicit RunLogLine(const char* kind);
  RunLogLine& add(const char* key, uint64_t value);
  RunLogLine& add(const char* key, const std::string& value);
  std::string end();

 private:
  std::string text_;
};

class RunLogWriter {
 public:
  // An empty path: a log that drops everything.
  void open(const char* path) noexcept;
  bool enabled() const noexcept { return file_.load(std::memory_order_relaxed) >= 0; }
  void write(RunLogLine& line) noexcept;
  void flush() noexcept;
  // In a fork child: forgets what is buffered.
  void abandon() noexcept;

  static uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC

 private:
  void write_out() noexcept;

  std::mutex mutex_;
  std::string buffer_;
  std::atomic<int> file_{-1};
};

}  // namespace reprise::replay

// Writes what happens in a run, as JSON lines for the report: REPRISE_RUN_LOG. Lines of kinds that come often are built
// in memory and written in large pieces, at the ends of iterations and a moment later at the most, where other lines
// come; all others at once: a program that is killed says no more. Callers: the enforcer and the dispatcher, off the
// hot path. Never fails loudly.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>

#include "preload/base/run_log_keys.h"

namespace reprise {
struct Said;
}

namespace reprise::replay {

// Of lines of these kinds there are many, and each says little.
template <typename Tag>
constexpr bool comes_often() {
  const auto is = [](const auto&... kinds) {
    return (std::is_same_v<run_log::LineKind<Tag>, std::remove_cvref_t<decltype(kinds)>> || ...);
  };
  return is(run_log::memory::line, run_log::iteration::line, run_log::loop_end::line, run_log::divergence::line,
            run_log::activate::line, run_log::activity::line, run_log::overlap::line, run_log::examine::line,
            run_log::audit::line, run_log::unmanaged::line, run_log::calls::line);
}

// One line: {"kind":"...",...}. Text is escaped.
class RunLogText {
 public:
  std::string end();

 protected:
  RunLogText(const char* kind, bool often);
  void append(const char* key, uint64_t value);
  void append(const char* key, const std::string& value);

 private:
  friend class RunLogWriter;  // adds the keys of every line
  std::string text_;
  bool often_;
};

// A line of one kind, which takes the keys of that kind: RunLogLine line(run_log::memory::line);
template <typename Tag>
class RunLogLine : public RunLogText {
 public:
  explicit RunLogLine(const run_log::LineKind<Tag>& kind) : RunLogText(kind.name, comes_often<Tag>()) {}
  RunLogLine& add(const run_log::Key<Tag, run_log::Number>& key, uint64_t value) {
    append(key.name, value);
    return *this;
  }
  RunLogLine& add(const run_log::Key<Tag, run_log::Text>& key, const std::string& value) {
    append(key.name, value);
    return *this;
  }
  RunLogLine& add(const run_log::Key<Tag, run_log::Text>& key, const run_log::Word<Tag>& word) {
    append(key.name, std::string(word.name));
    return *this;
  }
};

class RunLogWriter {
 public:
  ~RunLogWriter();
  // An empty path: a log that drops everything. What is there goes, and a line says so, unless others are meant to
  // write there, too, or do, or did as programs of the same command.
  enum class Others : uint8_t { none, write_there };
  void open(const char* path, Others others = Others::none) noexcept;
  bool enabled() const noexcept { return file_.load(std::memory_order_relaxed) >= 0; }
  void write(RunLogText& line) noexcept;
  void flush() noexcept;
  // Warnings go to stderr alone from here on: other lines have what they say.
  void keep_warnings(bool keep) noexcept { keeps_warnings_.store(keep, std::memory_order_relaxed); }
  // Have other processes written here, as others of a launcher's command do? Reads all of it.
  bool has_others(const char* path) const noexcept;
  // In a fork child: forgets what is buffered.
  void abandon() noexcept;

  // Why memory is managed on demand; `plan`: the one that cannot be used, kNoPlan where there is none.
  static constexpr uint64_t kNoPlan = ~uint64_t{0};
  void write_on_demand(const run_log::Word<run_log::on_demand::Tag>& cause, const std::string& reason,
                       uint64_t plan = kNoPlan) noexcept;

  static uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC

 private:
  static void record_warning(const Said& said) noexcept;
  void write_out() noexcept;

  std::mutex mutex_;
  std::atomic<bool> keeps_warnings_{true};
  std::string buffer_;
  uint64_t written_out_ns_ = 0;
  uint64_t process_ = 0;
  std::atomic<int> file_{-1};
};

}  // namespace reprise::replay

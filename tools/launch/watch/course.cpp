#include "tools/launch/watch/course.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "preload/base/run_log_keys.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/sizes.h"

namespace reprise::tools {
namespace {

constexpr uint64_t kEveryNs = 1'000'000'000;
constexpr size_t kMostBlocks = 256;  // at once: a log may grow faster than it is read

uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Most lines say nothing that is shown: they are not parsed.
bool is_shown(std::string_view line) {
  for (const char* begin : {"{\"kind\":\"iteration\"", "{\"kind\":\"memory\"", "{\"kind\":\"end\""}) {
    if (line.starts_with(begin)) return true;
  }
  return false;
}

size_t columns_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

bool Course::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.seekg(static_cast<std::streamoff>(offset_))) return false;
  for (size_t blocks = 0; blocks < kMostBlocks; ++blocks) {
    char block[1 << 16];
    file.read(block, sizeof block);
    const auto got = static_cast<size_t>(file.gcount());
    offset_ += got;
    rest_.append(block, got);
    size_t begin = 0;
    for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      take(std::string_view(rest_).substr(begin, end - begin));
    }
    rest_.erase(0, begin);
    if (got < sizeof block) return false;
  }
  return true;
}

void Course::take(std::string_view line) {
  if (!is_shown(line)) return;
  const auto entry = nlohmann::json::parse(line, nullptr, false);
  if (!entry.is_object()) return;
  const auto number = [&](const auto& key) { return entry.value(key.name, uint64_t{0}); };
  const std::string kind = entry.value("kind", std::string());
  const uint64_t process = number(run_log::every::process);
  Program& program = programs_[process];
  if (kind == run_log::iteration::line.name) {
    program.last_planned =
        entry.value(run_log::iteration::mode.name, std::string()) == run_log::iteration::planned.name;
    ++(program.last_planned ? program.planned : program.on_demand);
    program.last_ns = number(run_log::iteration::wall_ns);
    shown_ = process;
  } else if (kind == run_log::memory::line.name) {
    program.device_bytes = number(run_log::memory::device_bytes);
    program.peak_bytes = std::max(program.peak_bytes, program.device_bytes);
    program.moved_bytes = std::max(program.moved_bytes, number(run_log::memory::moved_bytes));
  } else if (kind == run_log::end::line.name) {
    program.peak_bytes = std::max(program.peak_bytes, number(run_log::end::peak_used_bytes));
    program.moved_bytes = number(run_log::end::offload_bytes) + number(run_log::end::reload_bytes);
    program.ended = true;
  }
  if (shown_ == 0) shown_ = process;
}

std::string Course::line() const {
  const auto found = programs_.find(shown_);
  if (found == programs_.end()) return "";
  const Program& program = found->second;
  const uint64_t iterations = program.planned + program.on_demand;
  std::string text = program.ended ? "ended: " : "";
  text += iterations == 0
              ? "no iteration yet"
              : fmt::format("iteration {} ({}), {} each", iterations, program.last_planned ? "planned" : "on demand",
                            format_duration(program.last_ns));
  text += fmt::format(", peak {}", format_bytes(program.peak_bytes));
  if (program.moved_bytes > 0) text += fmt::format(", {} moved", format_bytes(program.moved_bytes));
  return text;
}

std::string Course::metrics() const {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, const auto& values) {
    fmt::format_to(std::back_inserter(text), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
    for (const auto& [process, program] : programs_) {
      for (const auto& [labels, value] : values(program)) {
        fmt::format_to(std::back_inserter(text), "{}{{process=\"{}\"{}}} {}\n", name, process, labels, value);
      }
    }
  };
  using Values = std::vector<std::pair<const char*, double>>;
  add("reprise_iterations_total", "counter", "Iterations that have ended.", [](const Program& of) {
    return Values{{",mode=\"planned\"", static_cast<double>(of.planned)},
                  {",mode=\"on_demand\"", static_cast<double>(of.on_demand)}};
  });
  add("reprise_iteration_seconds", "gauge", "What the last iteration took.", [](const Program& of) {
    return Values{{"", static_cast<double>(of.last_ns) / 1e9}};
  });
  add("reprise_device_bytes", "gauge", "Device memory of managed tensors.", [](const Program& of) {
    return Values{{"", static_cast<double>(of.device_bytes)}};
  });
  add("reprise_device_peak_bytes", "gauge", "Device memory at its peak.", [](const Program& of) {
    return Values{{"", static_cast<double>(of.peak_bytes)}};
  });
  add("reprise_moved_bytes_total", "counter", "Bytes copied to the host and back.", [](const Program& of) {
    return Values{{"", static_cast<double>(of.moved_bytes)}};
  });
  return text;
}

Watch::Watch(std::string run_log, bool on_terminal, std::string metrics)
    : run_log_(std::move(run_log)), on_terminal_(on_terminal), metrics_(std::move(metrics)), looked_ns_(now_ns()) {}

Watch::~Watch() {
  if (shown_) dprintf(STDERR_FILENO, "\r\033[K");
  if (metrics_.empty()) return;
  course_.read(run_log_);
  if (const Status written = write_file(metrics_, course_.metrics()); !written.ok()) say(written.message());
}

bool Watch::look() {
  const uint64_t now = now_ns();
  if (now < looked_ns_ + kEveryNs) return false;
  looked_ns_ = now;
  course_.read(run_log_);
  if (on_terminal_) show();
  if (!metrics_.empty()) (void)write_file(metrics_, course_.metrics());  // its destructor says what is wrong
  return false;
}

// The cursor goes back to the line's begin, so that what the program prints next is not appended to it.
void Watch::show() {
  std::string text = course_.line();
  if (text.empty()) return;
  text = "reprise: " + text;
  if (const size_t columns = columns_of_terminal(); text.size() >= columns) text.resize(columns - 1);
  dprintf(STDERR_FILENO, "\r\033[K%s\r", text.c_str());
  shown_ = true;
}

}  // namespace reprise::tools

#include "tools/report/run_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/cli/files.h"

namespace reprise::report {
namespace {

using nlohmann::json;

uint64_t number(const json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return 0;
  if (found->is_number_unsigned()) return found->get<uint64_t>();
  const double value = found->get<double>();
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

// Texts of the program's own (kernel names, paths) may hold anything; numbers stand for themselves.
std::string text(const json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump(-1, ' ', false, json::error_handler_t::replace);
}

void read_start(const json& line, RunLog& log) {
  log.program = text(line, "program");
  log.driver = text(line, "driver");
  log.mode = text(line, "mode");
  log.start_ns = number(line, "time_ns");
  log.budget_bytes = number(line, "budget_bytes");
  log.budget_percent = number(line, "budget_percent");
  log.granularity = number(line, "granularity");
}

void read_plan_line(const json& line, RunLog& log) {
  if (++log.plan_count == 1) log.plan_at_ns = number(line, "at_ns");
  log.plan_path = text(line, "path");
  log.policy = text(line, "policy");
}

void read_activate(const json& line, RunLog& log) {
  log.activation_vmm_calls += number(line, "vmm_calls");
  log.in_force_at_end = true;
  if (++log.activation_count == 1) {
    log.first_activation = number(line, "iteration");
    log.activation_at_ns = number(line, "at_ns");
  }
  if (!log.divergences.empty() && !log.divergences.back().resumed) {
    log.divergences.back().resumed = number(line, "iteration");
  }
}

void read_iteration(const json& line, RunLog& log) {
  RunIteration it;
  it.index = number(line, "index");
  it.planned = text(line, "mode") == "planned";
  it.wall_ns = number(line, "wall_ns");
  it.offload_bytes = number(line, "offload_bytes");
  it.reload_bytes = number(line, "reload_bytes");
  it.stall_ns = number(line, "stall_ns");
  it.vmm_calls = number(line, "vmm_calls");
  it.calls = number(line, "calls");
  log.iterations.push_back(it);
}

void read_divergence(const json& line, RunLog& log) {
  log.divergences.push_back({number(line, "iteration"), number(line, "call"), text(line, "expected"), text(line, "got"),
                             text(line, "reason"), number(line, "at_ns")});
  log.in_force_at_end = false;
}

void read_loop_end(const json& line, RunLog& log) {
  read_divergence(line, log);
  log.divergences.back().expected = "another iteration";
  log.divergences.back().loop_end = true;
}

void read_memory(const json& line, RunLog& log) {
  log.memory.push_back({number(line, "time_ns"), number(line, "device_bytes"), number(line, "requested_bytes")});
}

void read_activity(const json& line, RunLog& log) {
  log.activities.push_back({number(line, "iteration"), number(line, "vertex"), text(line, "engine"),
                            number(line, "start_ns"), number(line, "end_ns")});
}

void read_overlap(const json& line, RunLog& log) {
  log.overlaps.push_back(
      {number(line, "iteration"), number(line, "compute_ns"), number(line, "copy_ns"), number(line, "both_ns")});
}

void read_unmanaged(const json& line, RunLog& log) {
  log.unmanaged.push_back({text(line, "what"), number(line, "count"), number(line, "bytes")});
}

void read_end(const json& line, RunLog& log) {
  log.ended = true;
  log.end_ns = number(line, "time_ns");
  log.iterations_planned = number(line, "iterations_planned");
  log.iterations_passive = number(line, "iterations_passive");
  log.divergence_count = number(line, "divergences");
  log.peak_device_bytes = number(line, "peak_device_bytes");
  log.peak_requested_bytes = number(line, "peak_requested_bytes");
  // A share of the peak is only known in bytes at the end.
  if (const uint64_t budget = number(line, "budget_bytes"); budget > 0) log.budget_bytes = budget;
}

using ReadLine = void (*)(const json&, RunLog&);
const std::map<std::string, ReadLine>& readers() {
  static const std::map<std::string, ReadLine> table = {{"start", read_start},
                                                        {"plan", read_plan_line},
                                                        {"activate", read_activate},
                                                        {"iteration", read_iteration},
                                                        {"divergence", read_divergence},
                                                        {"loop_end", read_loop_end},
                                                        {"memory", read_memory},
                                                        {"activity", read_activity},
                                                        {"overlap", read_overlap},
                                                        {"unmanaged", read_unmanaged},
                                                        {"end", read_end}};
  return table;
}

// A program that was killed has no end line: what the other lines say stands in for it.
void complete(RunLog& log) {
  if (log.ended) return;
  for (const RunIteration& it : log.iterations) ++(it.planned ? log.iterations_planned : log.iterations_passive);
  log.divergence_count = static_cast<uint64_t>(std::count_if(log.divergences.begin(), log.divergences.end(),
                                                             [](const RunDivergence& one) { return !one.loop_end; }));
  for (const RunMemory& sample : log.memory) {
    log.peak_device_bytes = std::max(log.peak_device_bytes, sample.device_bytes);
    log.peak_requested_bytes = std::max(log.peak_requested_bytes, sample.requested_bytes);
  }
}

}  // namespace

RunLog parse_run_log(const std::string& content) {
  RunLog log;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const json value = json::parse(line, nullptr, false);
    if (!value.is_object()) {
      ++log.unreadable_lines;
      continue;
    }
    const auto reader = readers().find(text(value, "kind"));
    if (reader != readers().end()) reader->second(value, log);
    if (value.contains("message")) log.messages.push_back(text(value, "message"));
  }
  complete(log);
  return log;
}

Result<RunLog> read_run_log(const std::string& path) {
  Result<std::string> content = tools::read_file(path);
  if (!content.ok()) return content.status();
  RunLog log = parse_run_log(content.value());
  if (log.program.empty() && log.unreadable_lines > 0 && log.iterations.empty() && !log.ended) {
    return Status(StatusCode::corrupt, fmt::format("{}: not a run log; give the file of --run-log", path));
  }
  return log;
}

void keep_iterations(RunLog& log, uint64_t calls) {
  const auto other = [calls](const RunIteration& it) { return !it.planned && it.calls != 0 && it.calls != calls; };
  const auto removed = static_cast<uint64_t>(std::count_if(log.iterations.begin(), log.iterations.end(), other));
  log.iterations.erase(std::remove_if(log.iterations.begin(), log.iterations.end(), other), log.iterations.end());
  log.iterations_passive -= std::min(removed, log.iterations_passive);
}

uint64_t median_iteration_ns(const RunLog& log, bool planned) {
  std::vector<uint64_t> times;
  for (const RunIteration& it : log.iterations) {
    if (it.planned == planned && it.wall_ns > 0) times.push_back(it.wall_ns);
  }
  if (times.empty()) return 0;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace reprise::report

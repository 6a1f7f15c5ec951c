#include "tools/report/log/run_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "preload/trace/median.h"
#include "tools/cli/files.h"
#include "tools/cli/json_depth.h"
#include "tools/cli/run_log_value.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/redacted.h"

namespace reprise::report {
namespace {

using nlohmann::json;
using tools::value_of;

void take(const json& line, const auto& key, std::string* value) { *value = value_of(line, key); }
template <typename Number>
requires std::is_arithmetic_v<Number>
void take(const json& line, const auto& key, Number* value) { *value = static_cast<Number>(value_of(line, key)); }
template <typename Value>
void take(const json& line, const auto& key, std::optional<Value>* value) {
  take(line, key, &value->emplace());
}

// Members of `values` that are named as keys of this kind get what the line says; what it does not say stays.
template <typename Tag, typename Values>
void read_keys(const json& line, const run_log::LineKind<Tag>&, Values& values) {
#define RUN_LOG_KEY(kind, name, Value, unit, old_name, help)                                                \
  if constexpr (std::is_same_v<Tag, run_log::kind::Tag>) {                                                  \
    if constexpr (requires { take(line, run_log::kind::name, &values.name); }) {                            \
      if (tools::find_key(line, #name, old_name) != nullptr) take(line, run_log::kind::name, &values.name); \
    }                                                                                                       \
  }
#include "preload/base/run_log_keys.def"
}

void read_start(const json& line, RunLog& log) {
  read_keys(line, run_log::start::line, log);
  log.start_ns = value_of(line, run_log::start::time_ns);
}

void read_not_managed(const json& line, RunLog& log) { log.not_managed = value_of(line, run_log::not_managed::reason); }

constexpr uint64_t kMostPlans = 1024;  // more than a run ever has

// A plan that replaces another one is told as the same one.
uint64_t shown_number(const RunLog& log, uint64_t number) {
  return number < log.plans.numbers.size() ? log.plans.numbers[number] : number;
}

void read_plan_line(const json& line, RunLog& log) {
  std::vector<uint64_t>& numbers = log.plans.numbers;
  const bool numbered = line.contains(run_log::plan::index.name);
  const uint64_t number = numbered ? value_of(line, run_log::plan::index) : numbers.size();
  if (number >= kMostPlans) return;
  if (number >= numbers.size()) numbers.resize(number + 1);
  const bool replaces = line.contains(run_log::plan::replaces.name);
  numbers[number] = replaces ? shown_number(log, value_of(line, run_log::plan::replaces)) : log.plan_count;
  if (line.contains(run_log::plan::kept.name)) log.plans.kept_ones.push_back(number);
  if (replaces) log.plans.replaced.push_back(value_of(line, run_log::plan::replaces));
  if (!replaces) {
    log.iteration_hashes.push_back(value_of(line, run_log::plan::iteration_hash));
    ++log.plan_count;
  }
  if (numbers[number] != 0) return;
  log.plans.kept = line.contains(run_log::plan::kept.name);
  log.plans.shown = number;
  log.activities.clear();  // of the one before it
  log.plan_calls = value_of(line, run_log::plan::calls);
  if (!replaces) log.plan_at_ns = value_of(line, run_log::every::at_ns);
  log.plan_path = value_of(line, run_log::plan::path);
  log.policy = value_of(line, run_log::plan::policy);
  log.plan_budget_bytes = value_of(line, run_log::plan::budget_bytes);
  log.plan_predicted_ns = value_of(line, run_log::plan::predicted_ns);
  log.plan_offload_bytes = value_of(line, run_log::plan::offload_bytes);
  log.plan_reload_bytes = value_of(line, run_log::plan::reload_bytes);
  log.planned_launches = value_of(line, run_log::plan::launches);
  log.audited_launches = value_of(line, run_log::plan::audited_launches);
}

void read_examine(const json& line, RunLog& log) {
  log.examined.ns += value_of(line, run_log::examine::ns);
  if (!tools::says(value_of(line, run_log::examine::outcome), run_log::examine::examined)) return;
  ++log.examined.launches;
  log.examined.names.insert(value_of(line, run_log::examine::kernel));
}

void read_on_demand(const json& line, RunLog& log) {
  RunReason& reason = log.reasons.emplace_back();
  read_keys(line, run_log::on_demand::line, reason);
  reason.reason = demangle_words(reason.reason);
  if (reason.plan) reason.plan = shown_number(log, *reason.plan);
}

void read_room(const json& line, RunLog& log) {
  log.room = RoomFigures{value_of(line, run_log::room::total_bytes), value_of(line, run_log::room::elsewhere_bytes),
                         value_of(line, run_log::room::headroom_bytes), value_of(line, run_log::room::room_bytes)};
}

void read_repeats(const json& line, RunLog& log) {
  uint64_t first = log.iterations.empty() ? 0 : log.iterations.back().index + 1;
  if (!log.repeats.empty()) first = std::max(first, log.repeats.back().first + log.repeats.back().iterations);
  read_keys(line, run_log::repeats::line, log.repeats.emplace_back());
  log.repeats.back().first = first;
}

void read_shortage(const json& line, RunLog& log) {
  read_keys(line, run_log::shortage::line, log.shortages.emplace_back());
}

void read_host_full(const json& line, RunLog& log) {
  read_keys(line, run_log::host_full::line, log.host_full.emplace());
}

// The program may have left the plan already when it came in force: the line of that iteration is the earlier one then.
void read_activate(const json& line, RunLog& log) {
  log.activation_vmm_calls += value_of(line, run_log::activate::vmm_calls);
  const uint64_t iteration = value_of(line, run_log::activate::iteration);
  const bool left = !log.divergences.empty() && log.divergences.back().iteration == iteration;
  log.in_force_at_end = !left;
  const uint64_t plan = value_of(line, run_log::activate::plan);
  log.last_in_force = shown_number(log, plan);
  std::vector<RunInForce>& known = log.plans.in_force;
  const auto same = [&](const RunInForce& one) { return one.number == plan; };
  if (known.size() < kMostPlans && std::none_of(known.begin(), known.end(), same)) known.push_back({iteration, plan});
  if (left) log.divergences.back().plan = log.last_in_force;
  if (++log.activation_count == 1) {
    log.first_activation = iteration;
    log.activation_at_ns = value_of(line, run_log::every::at_ns);
  }
  if (!log.divergences.empty() && !left && !log.divergences.back().resumed) {
    log.divergences.back().resumed = iteration;
  }
}

void read_iteration(const json& line, RunLog& log) {
  RunIteration& it = log.iterations.emplace_back();
  read_keys(line, run_log::iteration::line, it);
  it.planned = tools::says(value_of(line, run_log::iteration::mode), run_log::iteration::planned);
  const uint64_t number = value_of(line, run_log::iteration::plan);
  it.plan = shown_number(log, number);
  it.number = number;
  it.end_ns = value_of(line, run_log::every::at_ns);
  it.counted = it.planned || line.contains(run_log::iteration::offload_bytes.name);
}

void read_divergence(const json& line, RunLog& log) {
  RunDivergence& one = log.divergences.emplace_back();
  read_keys(line, run_log::divergence::line, one);
  one.at_ns = value_of(line, run_log::every::at_ns);
  one.plan = log.last_in_force;
  log.in_force_at_end = false;
}

void read_loop_end(const json& line, RunLog& log) {
  RunDivergence& end = log.divergences.emplace_back();
  read_keys(line, run_log::loop_end::line, end);
  end.expected = "another iteration";
  end.at_ns = value_of(line, run_log::every::at_ns);
  end.loop_end = true;
  end.plan = log.last_in_force;
  log.in_force_at_end = false;
}

void read_memory(const json& line, RunLog& log) { read_keys(line, run_log::memory::line, log.memory.emplace_back()); }

// The report shows one plan, the first.
void read_activity(const json& line, RunLog& log) {
  if (value_of(line, run_log::activity::plan) != log.plans.shown) return;
  read_keys(line, run_log::activity::line, log.activities.emplace_back());
}

void read_overlap(const json& line, RunLog& log) {
  read_keys(line, run_log::overlap::line, log.overlaps.emplace_back());
}

void read_look_ahead(const json& line, RunLog& log) {
  if (!log.look_ahead) log.look_ahead.emplace();
  read_keys(line, run_log::look_ahead::line, *log.look_ahead);
}

void read_calls(const json& line, RunLog& log) {
  if (!log.look_ahead) log.look_ahead.emplace();
  read_keys(line, run_log::calls::line, log.look_ahead->noted.emplace_back());
}

void read_unmanaged(const json& line, RunLog& log) {
  read_keys(line, run_log::unmanaged::line, log.unmanaged.emplace_back());
}

void read_end(const json& line, RunLog& log) {
  const uint64_t asked = log.budget_bytes;
  read_keys(line, run_log::end::line, log);
  log.ended = true;
  log.end_ns = value_of(line, run_log::end::time_ns);
  log.counted = log.plan_count > 0 && line.contains(run_log::end::iterations_unfinished.name);
  log.left.count = value_of(line, run_log::end::iterations_unfinished);
  log.divergence_count = value_of(line, run_log::end::divergences);
  if (log.budget_bytes == 0) log.budget_bytes = asked;  // else a share of the peak, which is known in bytes at the end
}

void read_recorded(const json& line, RunLog& log) { read_keys(line, run_log::recorded::line, log.recorded.emplace()); }

void read_program_end(const json& line, RunLog& log) {
  log.kept_plan = value_of(line, run_log::program_end::plan);
  read_keys(line, run_log::program_end::line, log.command.emplace());
  log.command->process = value_of(line, run_log::program_end::command);
}

using ReadLine = void (*)(const json&, RunLog&);
const std::map<std::string, ReadLine>& readers() {
  static const std::map<std::string, ReadLine> table = {{run_log::start::line.name, read_start},
                                                        {run_log::not_managed::line.name, read_not_managed},
                                                        {run_log::plan::line.name, read_plan_line},
                                                        {run_log::on_demand::line.name, read_on_demand},
                                                        {run_log::repeats::line.name, read_repeats},
                                                        {run_log::examine::line.name, read_examine},
                                                        {run_log::room::line.name, read_room},
                                                        {run_log::shortage::line.name, read_shortage},
                                                        {run_log::host_full::line.name, read_host_full},
                                                        {run_log::activate::line.name, read_activate},
                                                        {run_log::iteration::line.name, read_iteration},
                                                        {run_log::divergence::line.name, read_divergence},
                                                        {run_log::loop_end::line.name, read_loop_end},
                                                        {run_log::memory::line.name, read_memory},
                                                        {run_log::look_ahead::line.name, read_look_ahead},
                                                        {run_log::calls::line.name, read_calls},
                                                        {run_log::activity::line.name, read_activity},
                                                        {run_log::overlap::line.name, read_overlap},
                                                        {run_log::unmanaged::line.name, read_unmanaged},
                                                        {run_log::end::line.name, read_end},
                                                        {run_log::recorded::line.name, read_recorded},
                                                        {run_log::program_end::line.name, read_program_end}};
  return table;
}

// Of a log without end: what its planned iterations moved, and what its samples say by then.
std::optional<uint64_t> moved_by_lines(const RunLog& log) {
  std::optional<uint64_t> moved;
  for (const RunMemory& sample : log.memory) {
    if (sample.moved_bytes) moved = std::max(moved.value_or(0), *sample.moved_bytes);
  }
  const uint64_t planned = log.offload_bytes + log.reload_bytes;
  return planned > moved.value_or(0) ? planned : moved;
}

// A program that was killed has no end line: what the other lines say stands in for it.
void complete(RunLog& log) {
  if (log.ended) {
    log.moved_bytes = log.offload_bytes + log.reload_bytes;
    return;
  }
  for (const RunIteration& it : log.iterations) ++(it.planned ? log.iterations_planned : log.iterations_on_demand);
  for (const RunRepeats& over : log.repeats) log.iterations_on_demand += over.iterations;
  for (const RunIteration& it : log.iterations) {
    log.offload_bytes += it.offload_bytes;
    log.reload_bytes += it.reload_bytes;
  }
  log.moved_bytes = moved_by_lines(log);
  log.divergence_count = static_cast<uint64_t>(std::count_if(log.divergences.begin(), log.divergences.end(),
                                                             [](const RunDivergence& one) { return !one.loop_end; }));
  for (const RunMemory& sample : log.memory) {
    log.peak_device_bytes = std::max(log.peak_device_bytes, sample.device_bytes);
    log.peak_requested_bytes = std::max(log.peak_requested_bytes, sample.requested_bytes);
  }
}

}  // namespace

std::string difference_of(const RunDivergence& one) {
  return one.difference.empty() ? std::string() : fmt::format(" ({})", one.difference);
}

std::string command_of(const RunLog& log) {
  const std::string arguments = log.arguments.value_or("");
  return arguments.empty() || is_redacted(arguments) ? log.program : log.program + " " + arguments;
}

std::string ending_of(int exit_code, int signal) {
  if (signal != 0) return fmt::format("signal {} ({})", signal, strsignal(signal));
  return exit_code != 0 ? fmt::format("exit code {}", exit_code) : std::string();
}

namespace {

json value_of_line(const std::string& line) {
  const bool shallow = tools::json_depth(line) <= tools::kMostJsonDepth;
  return shallow ? json::parse(line, nullptr, false) : json();
}

// A program that has begun: from which line on, in which process, and what its lines say. A process may become one
// after the other.
struct Begun {
  size_t line = 0;
  uint64_t process = 0;  // 0: not said, as in logs of before
  uint64_t run = 0;      // the process of the launcher; 0: it was started without
  RunLog log = {};
};

struct Programs {
  std::vector<Begun> begun;  // in this order
  uint64_t run = 0;          // the one that the log is of; 0: of none
};

// A log that does not tell programs apart yields the last one. If no program of the run says that it has begun, the
// lines that belong to none are one program.
Programs find_programs(const std::string& content) {
  Programs all;
  std::istringstream lines(content);
  size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const bool may_be_start = line.find("\"start\"") != std::string::npos;
    if (!may_be_start && line.find("\"program_end\"") == std::string::npos) continue;
    const json value = value_of_line(line);
    if (!value.is_object()) continue;
    if (tools::kind_of(value) == run_log::start::line.name) {
      all.begun.push_back({number, value_of(value, run_log::every::process), value_of(value, run_log::start::run)});
      if (all.run == 0) all.run = all.begun.back().run;
    } else if (tools::kind_of(value) == run_log::program_end::line.name) {
      if (const uint64_t run = value_of(value, run_log::program_end::run); run != 0) all.run = run;
    }
  }
  std::vector<Begun>& begun = all.begun;
  if (!begun.empty() && begun.back().process == 0) begun.erase(begun.begin(), begun.end() - 1);
  const bool has_own = std::any_of(begun.begin(), begun.end(), [&](const Begun& one) { return one.run == all.run; });
  if (!has_own) begun.push_back({0, 0, all.run});
  return all;
}

void read_line(const json& line, RunLog& log) {
  if (const uint64_t process = value_of(line, run_log::every::process); process != 0) log.process = process;
  const auto reader = readers().find(tools::kind_of(line));
  if (reader != readers().end()) reader->second(line, log);
  if (line.contains(run_log::every::message.name)) {
    log.messages.push_back(demangle_words(value_of(line, run_log::every::message)));
  }
}

// What the launcher writes is of no process, and of all that it has started.
void give_line(const json& line, size_t number, std::vector<Begun>& begun) {
  const uint64_t process = value_of(line, run_log::every::process);
  const auto is_whose = [&](const Begun& one) { return one.process == process && one.line <= number; };
  const auto whose = std::find_if(begun.rbegin(), begun.rend(), is_whose);
  if (process != 0 && whose != begun.rend()) return read_line(line, whose->log);
  // A program that allocates nothing has its start behind what was said while it ran.
  const auto starts_later =
      std::find_if(begun.begin(), begun.end(), [&](const Begun& one) { return one.process == process; });
  if (process != 0 && starts_later != begun.end()) return read_line(line, starts_later->log);
  for (Begun& one : begun) {
    if (process == 0 || one.process == 0) read_line(line, one.log);
  }
}

// A program that has become another one did not end as that did.
bool is_last_of_its_process(const Begun& one, const std::vector<Begun>& begun) {
  return std::none_of(begun.begin(), begun.end(),
                      [&](const Begun& other) { return other.process == one.process && other.line > one.line; });
}

// How the command ended, if it is the program; else as the program says, if it came to its end.
void find_ending(RunLog& log, bool is_last_of_process) {
  if (log.exit_code) log.ending = ending_of(*log.exit_code, 0);
  if (!log.command) return;
  const RunCommandEnd& command = *log.command;
  const std::string ended = ending_of(command.exit_code, command.signal);
  const std::string in_words = ended.empty() ? "exit code 0" : ended;
  // A program that calls CUDA and comes to its end says so, whatever it has used.
  const bool said_nothing = log.process == 0 && log.program.empty() && !log.ended;
  const bool is_program =
      command.process == 0 || said_nothing || (command.process == log.process && is_last_of_process);
  const bool said_all = log.ended || (log.program.empty() && !said_nothing);
  if (!is_program) {
    log.command_ending = ended == log.ending ? "" : in_words;
  } else if (command.process == 0 || said_all || command.signal != 0) {
    log.ending = ended;
  } else {
    log.ending = in_words + ", without its exit handlers";
  }
}

uint64_t asked_bytes(const RunLog& log) {
  uint64_t most = log.peak_requested_bytes;
  for (const RunMemory& sample : log.memory) most = std::max(most, sample.requested_bytes);
  return most;
}

// Without a plan the log counts whatever repeats: many times three calls are less than one long iteration.
uint64_t repeated_calls(const RunLog& log) {
  if (log.plan_calls > 0) return log.plan_calls * all_iterations(log);
  uint64_t calls = 0;
  for (const RunIteration& one : log.iterations) calls += one.calls;
  for (const RunRepeats& over : log.repeats) calls += over.calls * over.iterations;
  return calls;
}

ProgramFigures figures_of(const RunLog& log) {
  return {asked_bytes(log), log.plan_count > 0, log.iterations_planned, repeated_calls(log), log.start_ns};
}

}  // namespace

RunLog parse_run_log(const std::string& content) {
  auto [begun, run] = find_programs(content);
  std::istringstream lines(content);
  size_t number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    const json value = value_of_line(line);
    if (value.is_object()) {
      give_line(value, number, begun);
    } else {
      for (Begun& one : begun) ++one.log.unreadable_lines;
    }
  }
  std::erase_if(begun, [of = run](const Begun& one) { return one.run != of; });
  std::vector<ProgramFigures> figures;
  figures.reserve(begun.size());
  for (Begun& one : begun) {
    complete(one.log);
    find_ending(one.log, is_last_of_its_process(one, begun));
    if (one.log.plan_calls > 0) keep_iterations(one.log, one.log.plan_calls);
    figures.push_back(figures_of(one.log));
  }
  Chosen chosen = which_program(figures);
  const size_t shown = chosen.place;
  RunLog log = std::move(begun[shown].log);
  log.chosen = std::move(chosen);
  if (log.recorded) count_recorded(log, *log.recorded);
  for (size_t i = 0; i < begun.size(); ++i) {
    if (i == shown) continue;
    log.others.push_back(command_of(begun[i].log));
    if (figures[i].has_plan) log.planned_others.push_back(log.others.back());
  }
  return log;
}

Result<RunLog> read_run_log(const std::string& path) {
  Result<std::string> content = tools::read_file(path);
  if (!content.ok()) return content.status();
  return parse_run_log(content.value());
}

bool never_began(const RunLog& log) {
  return log.activation_count == 0 && std::any_of(log.reasons.begin(), log.reasons.end(), [](const RunReason& one) {
           return one.plan && tools::says(one.cause, run_log::on_demand::never_began);
         });
}

std::string of_loops(const RunLog& log) {
  const std::set<std::string> loops(log.iteration_hashes.begin(), log.iteration_hashes.end());
  return loops.size() < 2 ? std::string() : fmt::format(" of {} loops", loops.size());
}

namespace {

// Numbers of iterations that are none of the program's loop.
class Removed {
 public:
  void add(uint64_t first, uint64_t count) {
    spans_.emplace_back(first, count);
    count_ += count;
  }
  uint64_t count() const { return count_; }
  // What remains moves up.
  void renumber(uint64_t& number) const {
    uint64_t below = 0;
    for (const auto& [first, count] : spans_) below += number > first ? std::min(count, number - first) : 0;
    number -= std::min(below, number);
  }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> spans_;
  uint64_t count_ = 0;
};

Removed remove_other_loops(RunLog& log, uint64_t calls) {
  Removed removed;
  std::erase_if(log.iterations, [&](const RunIteration& it) {
    const bool other = !it.planned && it.calls != 0 && it.calls != calls;
    if (other) removed.add(it.index, 1);
    return other;
  });
  std::erase_if(log.repeats, [&](const RunRepeats& over) {
    if (over.calls != calls) removed.add(over.first, over.iterations);
    return over.calls != calls;
  });
  return removed;
}

// Until a plan is known, an iteration is as many calls from wherever the loop was seen first. In the plan's cut there
// may be one less on demand: the end of the loop left it, or the plan came in force in its middle.
void remove_uncounted(RunLog& log, Removed& removed) {
  const auto on_demand = [](const RunIteration& it) { return !it.planned; };
  uint64_t listed = static_cast<uint64_t>(std::count_if(log.iterations.begin(), log.iterations.end(), on_demand));
  for (const RunRepeats& over : log.repeats) listed += over.iterations;
  for (; listed > log.iterations_on_demand; --listed) {
    const auto last = std::find_if(log.iterations.rbegin(), log.iterations.rend(), on_demand);
    if (last == log.iterations.rend()) return;
    removed.add(last->index, 1);
    log.iterations.erase(std::next(last).base());
  }
}

void renumber(RunLog& log, const Removed& removed) {
  if (removed.count() == 0) return;
  for (RunIteration& one : log.iterations) removed.renumber(one.index);
  for (RunRepeats& one : log.repeats) removed.renumber(one.first);
  for (RunActivity& one : log.activities) removed.renumber(one.iteration);
  for (RunOverlap& one : log.overlaps) removed.renumber(one.iteration);
  for (RunDivergence& one : log.divergences) {
    removed.renumber(one.iteration);
    if (one.resumed) removed.renumber(*one.resumed);
  }
  for (RunInForce& one : log.plans.in_force) removed.renumber(one.iteration);
  removed.renumber(log.first_activation);
}

// Did the program leave its last iteration for what is behind the loop, and no other one came?
bool left_its_last(const RunLog& log, uint64_t calls) {
  if (log.left.count == 0) return false;
  if (log.activation_count + log.divergences.size() == 0) return log.ended && log.ending.empty();  // no plan to leave
  if (log.divergences.empty() || !is_half_over(log.divergences.back(), calls)) return false;
  const RunDivergence& last = log.divergences.back();
  return !last.resumed && !log.iterations.empty() && log.iterations.back().index < last.iteration;
}

}  // namespace

RunMode mode_of(const RunLog& log, const RunIteration& iteration) {
  if (!iteration.planned) return RunMode::on_demand;
  const std::vector<uint64_t>& replaced = log.plans.replaced;
  const bool first = std::find(replaced.begin(), replaced.end(), iteration.number) != replaced.end();
  return first ? RunMode::first_plan : RunMode::plan;
}

void keep_iterations(RunLog& log, uint64_t calls) {
  Removed removed = remove_other_loops(log, calls);
  if (log.counted) remove_uncounted(log, removed);
  renumber(log, removed);
  if (!log.counted) {
    log.iterations_on_demand -= std::min(removed.count(), log.iterations_on_demand);
    log.left.count =
        static_cast<uint64_t>(std::count_if(log.divergences.begin(), log.divergences.end(),
                                            [calls](const RunDivergence& one) { return is_half_over(one, calls); }));
  }
  log.left.last_ended_loop = left_its_last(log, calls);
}

void count_recorded(RunLog& log, const RunRecorded& recorded) {
  log.recorded = recorded;
  keep_iterations(log, log.plan_calls > 0 ? log.plan_calls : recorded.calls);
  if (!log.counted) log.iterations_on_demand = std::max(log.iterations_on_demand, recorded.iterations);
}

uint64_t median_iteration_ns(const RunLog& log, bool planned) {
  std::vector<uint64_t> times;
  for (const RunIteration& it : log.iterations) {
    if (it.planned == planned && it.wall_ns > 0) times.push_back(it.wall_ns);
  }
  return trace::median(std::move(times));
}

}  // namespace reprise::report

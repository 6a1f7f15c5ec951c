// The numbers that several sections of the report name.
#include <fmt/core.h>

#include <algorithm>

#include "preload/base/readable.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/links.h"
#include "tools/report/log/measured.h"
#include "tools/report/report.h"
#include "tools/report/view/residency.h"
#include "tools/report/view/timeline.h"
#include "tools/report/view/travels.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

std::string trace_info(const Inputs& inputs, const char* key) {
  if (inputs.trace == nullptr) return {};
  const auto found = inputs.trace->info.find(key);
  return found == inputs.trace->info.end() ? std::string() : found->second;
}

double known_part(uint64_t part, uint64_t whole) {
  return whole == 0 ? -1 : static_cast<double>(part) / static_cast<double>(whole);
}

void add_plan_facts(const plan::Plan& plan, Facts& facts) {
  if (facts.program.empty()) facts.program = plan.program;
  if (facts.budget == 0) facts.budget = plan.budget_bytes;
  if (facts.peak_before == 0) facts.peak_before = plan.peak_bytes;
  facts.peak_planned = planned_peak(plan);
  facts.compute_ns = plan.compute_ns;
  facts.predicted_ns = plan.predicted_ns;
}

void add_times_of_run(const RunLog& log, Facts& facts) {
  if (log.start_ns == 0) return;
  if (log.end_ns > log.start_ns) facts.total_ns = log.end_ns - log.start_ns;
  if (log.activation_at_ns > log.start_ns) facts.before_plan_ns = log.activation_at_ns - log.start_ns;
}

void add_run_facts(const RunLog& log, Facts& facts) {
  if (facts.program.empty()) facts.program = command_of(log);
  if (log.not_managed) facts.budget = 0;                      // the one that was asked for was none
  if (log.budget_bytes > 0) facts.budget = log.budget_bytes;  // a plan may be tried within another one than its own
  facts.peak_actual = peak_of_run(log);
  // What the program asks for is less than what it takes of the device, which budgets in per cent are of.
  if (log.peak_footprint_bytes > 0) facts.peak_before = log.peak_footprint_bytes + log.outside_bytes;
  if (log.peak_program_bytes > 0) facts.peak_before = log.peak_program_bytes;
  facts.actual_ns = median_iteration_ns(log, true);
  facts.on_demand_ns = median_iteration_ns(log, false);
  add_times_of_run(log, facts);
  if (stall_share(log) == 0) facts.waited_for_copies_ns = 0;
}

// What the user gave a plan beyond its own budget, by a chunk or more, is of no use to its iterations.
void add_plan_budget(const Inputs& inputs, Facts& facts) {
  const RunLog& log = *inputs.log;
  if (log.mode != "replay" || log.iterations_planned == 0) return;
  const uint64_t planned = inputs.plan != nullptr ? inputs.plan->budget_bytes : log.plan_budget_bytes;
  if (planned != 0 && planned + log.chunk_bytes <= facts.budget) facts.plan_budget = planned;
}

bool is_another_link(const plan::PlannedLink& link, const RunLog* log) {
  if (log == nullptr || !link_of(link).known() || !link_of(*log).known()) return false;
  return are_far_apart(link_of(link), link_of(*log));
}

// As budgets in per cent are made bytes.
uint64_t bytes_of_percent(uint64_t percent, uint64_t whole) {
  return static_cast<uint64_t>(static_cast<double>(percent) / 100 * static_cast<double>(whole));
}

// A run within a percentage says with its end, or a plan, how much that was: of one that came to neither it is known by
// its recording's peak, unless more was used, so that the peak was another one.
void add_budget_of_percent(const RunLog& log, Facts& facts) {
  if (facts.budget != 0 || log.not_managed || facts.tensors_alone) return;
  const uint64_t budget = bytes_of_percent(log.budget_percent, facts.peak_before);
  if (budget >= facts.peak_actual) facts.budget = budget;
}

// Where nothing says what the program takes of a device without Reprise, which is more than its tensors have: no peak
// within a budget may be compared with them.
void add_bytes_of_tensors(const Inputs& inputs, Facts& facts) {
  if (inputs.trace != nullptr) facts.peak_before = highest(recorded_memory(*inputs.trace));
  // Without its end a log has samples of them alone, when chunks came or went.
  if (facts.peak_before == 0 && inputs.log != nullptr && inputs.log->ended) {
    facts.peak_before = inputs.log->peak_requested_bytes;
  }
  facts.tensors_alone = true;
}

}  // namespace

double stall_share(const RunLog& log) {
  uint64_t wall = 0;
  uint64_t stall = 0;
  for (const RunIteration& it : log.iterations) {
    if (!it.planned) continue;
    wall += it.wall_ns;
    stall += it.stall_ns;
  }
  return known_part(stall, wall);
}

double measured_stall_share(const Inputs& inputs) {
  const std::optional<TimeParts> time = measured_time(inputs);
  if (!time) return -1;
  const RunIteration* const whole = planned_iteration(*inputs.log, time->iteration);
  return whole == nullptr ? -1 : known_part(whole->stall_ns, whole->wall_ns);
}

std::optional<TimeParts> measured_time(const Inputs& inputs) {
  if (inputs.plan == nullptr || inputs.log == nullptr) return std::nullopt;
  return measured_parts(*inputs.plan, *inputs.log);
}

std::string the_measured_one(const Inputs& inputs) {
  return fmt::format("iteration {}{}", measured_iteration(*inputs.log).value_or(0), unlike_words(*inputs.log));
}

bool is_plan_for_another_link(const Inputs& inputs) {
  return inputs.plan != nullptr && is_another_link(inputs.plan->link, inputs.log);
}

bool is_recording_of_another_link(const Inputs& inputs) { return is_another_link(inputs.recorded_link, inputs.log); }

uint64_t left_of_planned_copies(const Inputs& inputs) {
  if (inputs.plan == nullptr || inputs.log == nullptr) return 0;
  uint64_t count = 0;
  uint64_t spared = 0;
  for (const RunIteration& it : inputs.log->iterations) {
    if (!it.planned) continue;
    ++count;
    spared += it.spared_bytes;
  }
  const uint64_t known_before = spared_by(*inputs.plan).clean_bytes;
  return count == 0 ? 0 : spared / count - std::min(spared / count, known_before);
}

std::string small_percent(double share) {
  if (share > 0 && share < 0.0005) return "less than 0.1 %";
  return decimal(100 * share, 1, 1) + " %";
}

std::string whole_percent(uint64_t part, uint64_t whole) {
  return (whole == 0 ? "0" : decimal(100 * static_cast<double>(part), static_cast<double>(whole), 0)) + " %";
}

std::string percent_that_holds(uint64_t part, uint64_t whole) {
  uint64_t percent = whole == 0 ? 0 : 100 * part / whole;
  while (percent < 100 && bytes_of_percent(percent, whole) < part) ++percent;
  return fmt::format("{} %", percent);
}

uint64_t planned_peak(const plan::Plan& plan) { return plan.chunk_count * plan.chunk_bytes + plan.reserved_bytes; }

std::string peak_words(uint64_t after, uint64_t before, bool tensors_alone) {
  return fmt::format("{} {} {}", tools::format_bytes(after),
                     after <= before && !tensors_alone ? "instead of" : "for tensors of", tools::format_bytes(before));
}

bool is_of_one_of_several(const Inputs& inputs) { return inputs.log != nullptr && !inputs.log->others.empty(); }

std::string budget_words(const Inputs& inputs, const char* of) {
  const Facts facts = collect_facts(inputs);
  const std::string bytes = tools::format_bytes(facts.budget);
  if (facts.plan_budget != 0) {
    return fmt::format("budget{} {}, of which the plan uses {}", of, bytes, tools::format_bytes(facts.plan_budget));
  }
  const RunLog* const log = inputs.log;
  if (facts.budget == 0) {
    const bool share = log != nullptr && log->budget_percent > 0 && !log->not_managed;
    return share ? fmt::format("budget{} {} % of the peak", of, log->budget_percent) : "";
  }
  if (log != nullptr && log->chunk_bytes != 0 &&
      facts.budget > bytes_of_percent(log->budget_percent, facts.peak_before) + log->chunk_bytes &&
      log->budget_percent > 0 && log->ended && !facts.tensors_alone) {
    return fmt::format("budget{} {}, to which {} % of the peak were raised", of, bytes, log->budget_percent);
  }
  if (log == nullptr || log->budget_percent == 0 || (log->ended && inputs.ending.empty()))
    return fmt::format("budget{} {}", of, bytes);
  return fmt::format("budget{} {} % of the peak, which was {} by then", of, log->budget_percent, bytes);
}

Facts collect_facts(const Inputs& inputs) {
  Facts facts;
  if (!is_of_one_of_several(inputs)) facts.program = inputs.program;
  if (facts.program.empty() && inputs.log != nullptr && inputs.log->arguments) facts.program = command_of(*inputs.log);
  facts.budget = inputs.budget_bytes;
  facts.bound_ns = inputs.bound_ns;
  facts.peak_before = inputs.peak_bytes;
  if (inputs.plan != nullptr) add_plan_facts(*inputs.plan, facts);
  if (inputs.made_compute_ns > 0) facts.compute_ns = inputs.made_compute_ns;
  if (inputs.log != nullptr) add_run_facts(*inputs.log, facts);
  if (inputs.log != nullptr) add_plan_budget(inputs, facts);
  if (inputs.plan != nullptr && inputs.log == nullptr)
    facts.waited_for_copies_ns = predicted_parts(*inputs.plan).moving_ns;
  if (const std::optional<TimeParts> measured = measured_time(inputs)) facts.waited_for_copies_ns = measured->moving_ns;
  if (inputs.plan != nullptr && inputs.log != nullptr) {
    const OwnTimes own = own_times(*inputs.plan, *inputs.log);
    facts.run_compute_ns = own.compute_ns;
    facts.run_iteration = own.iteration;
    if (own.compute_ns > 0) facts.run_bound_ns = inputs.run_bound_ns;
    const RunIteration* const whole = planned_iteration(*inputs.log, own.iteration);
    facts.run_wall_ns = whole == nullptr ? 0 : whole->wall_ns;
  }
  if (facts.program.empty()) facts.program = trace_info(inputs, "program");
  if (facts.peak_before == 0) add_bytes_of_tensors(inputs, facts);
  if (inputs.log != nullptr) add_budget_of_percent(*inputs.log, facts);
  return facts;
}

}  // namespace reprise::report

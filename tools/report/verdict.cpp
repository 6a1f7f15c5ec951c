// The first sentence of the report: how it went, in one breath.
#include <fmt/core.h>

#include "preload/base/room_figures.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/reasons.h"
#include "tools/report/log/shortages.h"
#include "tools/report/report.h"
#include "tools/report/sentences.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

Json verdict(const char* tone, const std::string& text) { return {{"tone", tone}, {"text", text}}; }

std::string memory(uint64_t bytes, const Facts& facts) {
  const uint64_t before = facts.peak_before;
  if (before == 0 || bytes >= before) return format_bytes(bytes);
  if (facts.tensors_alone) return peak_words(bytes, before, true);
  return fmt::format("{} instead of {} ({})", format_bytes(bytes), format_bytes(before),
                     percent_that_holds(bytes, before));
}

std::string waiting(const RunLog& log) {
  const double share = stall_share(log);
  if (share < 0) return "";
  if (share == 0) return ", and no work that was submitted had to wait";
  return fmt::format(", of which the device waited {}", small_percent(share));
}

// A plan of a small part of the program is not one of the program.
std::string share_of_program(const Inputs& inputs) {
  if (inputs.one_loop || inputs.iteration_covers.empty()) return "";
  return fmt::format(" That iteration covers {}.", inputs.iteration_covers);
}

// The reason itself is among the sentences.
std::string why_in_short(const Inputs& inputs) {
  const std::optional<RunReason> last = last_reason(inputs);
  return last ? row_of(*last, inputs.log->mode).in_short : why_unplanned(inputs);
}

// It ran, or did not, as it does without Reprise.
Json verdict_unmanaged(const Inputs& inputs, const Facts& facts) {
  const std::string used = facts.peak_before == 0 ? "ran without a budget"
                                                  : fmt::format("ran without a budget, and used {} at most",
                                                                format_bytes(facts.peak_before));
  const std::string ending = inputs.ending.empty() ? "" : fmt::format(", and ended with {}", inputs.ending);
  return verdict("bad", fmt::format("Device memory could not be managed: {}. The program {}{}.",
                                    *inputs.log->not_managed, used, ending));
}

Json verdict_of_run(const Inputs& inputs, const Facts& facts) {
  const RunLog& log = *inputs.log;
  if (log.not_managed) return verdict_unmanaged(inputs, facts);
  if (std::string used = ending_words(inputs); !used.empty()) {
    used[0] = 'T';
    if (log.shortages.empty()) {
      return verdict(
          "bad",
          used + (died_of_full_host(inputs) ? ". It got no memory: " + full_host_words(*log.host_full) : "") + ".");
    }
    const RunShortage& last = log.shortages.back();
    if (last.least_bytes == 0) {
      return verdict(
          "bad", fmt::format("{}. {} works on {} at once, and the device had no room for that: {}.", used, last.call,
                             format_bytes(last.needed_bytes), who_has_the_rest(log.room.value_or(RoomFigures{}))));
    }
    return verdict("bad", fmt::format("{}. {} works on {} at once, more than the budget of {} leaves: at least {} are "
                                      "needed.",
                                      used, last.call, format_bytes(last.needed_bytes), format_bytes(facts.budget),
                                      format_bytes(last.least_bytes)));
  }
  if (budget_kept(facts) == BudgetKept::passed) {
    const auto [used, budget] = peak_and_budget(facts);
    return verdict("bad", fmt::format("It used {} of device memory, more than the budget of {}.", used, budget));
  }
  if (const std::string none = no_memory_words(log); !none.empty()) {
    return verdict("good", fmt::format("It ran as it does without Reprise: {}.", none));
  }
  const std::string used = memory(facts.peak_actual, facts);
  if (log.iterations_planned > 0) {
    return verdict("good", fmt::format("It ran in {}: {} of {} iterations{} by a plan, which took {} each{}.{}", used,
                                       log.iterations_planned, all_iterations(log), of_loops(log),
                                       format_duration(facts.actual_ns), waiting(log), share_of_program(inputs)));
  }
  if (!log.reasons.empty() && tools::says(log.reasons.back().cause, run_log::on_demand::fits) && log.moved_bytes == 0) {
    return verdict("good", fmt::format("It ran in {}: all that it needs at once fits, and nothing moved.", used));
  }
  if (has_plans(log)) {
    return verdict("note", fmt::format("It ran in {}, but no iteration ran by its plan from start to end.", used));
  }
  return verdict("note", fmt::format("It ran in {}, but without a plan: {}.", used, why_in_short(inputs)));
}

}  // namespace

std::string unseen_end(const RunLog& log) {
  return log.command ? "the program was killed or crashed, or left without its exit handlers"
                     : "the program was killed or crashed, or this is only the beginning of its run log";
}

std::string no_memory_words(const RunLog& log) {
  if (!log.ended || log.peak_device_bytes + log.peak_requested_bytes != 0) return "";
  return log.unmanaged.empty() ? "no device memory was allocated"
                               : "no device memory was allocated that Reprise manages";
}

std::string ending_words(const Inputs& inputs) {
  const bool is_known = !inputs.ending.empty();
  if (inputs.log == nullptr && is_known)
    return "the program ended with " + inputs.ending + " before it used the device";
  if (inputs.log == nullptr) return "";
  const RunLog& log = *inputs.log;
  if (log.not_managed || (log.ended && !is_known)) return "";
  const Facts facts = collect_facts(inputs);
  const std::string ended = is_known ? "the program ended with " + inputs.ending : unseen_end(log);
  if (facts.peak_actual == 0 && !log.ended) {
    return ended + (is_known ? " before it could say what it used" : "; what it used is not known");
  }
  const std::string asked = log.ended && facts.peak_before > 0
                                ? fmt::format(", for {} that it had asked for", format_bytes(facts.peak_before))
                                : "";
  return fmt::format("{}; until then it used {} of device memory{}", ended, format_bytes(facts.peak_actual), asked);
}

std::string command_words(const Inputs& inputs) {
  if (inputs.log == nullptr || inputs.log->command_ending.empty()) return "";
  return "the command that started it ended with " + inputs.log->command_ending;
}

Json verdict_section(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  if (inputs.log != nullptr) {
    Json verdict = verdict_of_run(inputs, facts);
    if (const std::string calls = calls_without_memory(*inputs.log); !calls.empty()) {
      verdict["text"] =
          fmt::format("{} There was no memory for {}: what of it was not done the program may have missed.",
                      verdict.at("text").get<std::string>(), calls);
      verdict["tone"] = "bad";
    }
    if (const std::string command = command_words(inputs); !command.empty()) {
      verdict["text"] = fmt::format("{} T{}.", verdict.at("text").get<std::string>(), command.substr(1));
    }
    return verdict;
  }
  if (std::string ended = ending_words(inputs); !ended.empty()) {
    ended[0] = 'T';
    return verdict("bad", ended + ".");
  }
  if (inputs.plan != nullptr) {
    const uint64_t more = facts.predicted_ns > facts.compute_ns ? facts.predicted_ns - facts.compute_ns : 0;
    return verdict("good", fmt::format("By this plan an iteration would need {} and take {}: {} more than computing "
                                       "alone. It has not been run yet.{}",
                                       memory(facts.peak_planned, facts), format_duration(facts.predicted_ns),
                                       whole_percent(more, facts.compute_ns), share_of_program(inputs)));
  }
  if (!inputs.no_iteration.empty()) {
    return verdict("note", fmt::format("The program used {} at most, and nothing in it can be planned.",
                                       format_bytes(facts.peak_before)));
  }
  if (inputs.minimum_bytes > 0 && inputs.minimum_bytes < facts.peak_before) {
    const char* const what = inputs.one_loop ? "a plan could bring it down" : "a plan could bring one iteration down";
    return verdict("good",
                   fmt::format("The program used {} at most; {} to {} ({}).{}", format_bytes(facts.peak_before), what,
                               format_bytes(inputs.minimum_bytes),
                               percent_that_holds(inputs.minimum_bytes, facts.peak_before), share_of_program(inputs)));
  }
  return verdict("note", fmt::format("The program used {} of device memory at most.", format_bytes(facts.peak_before)));
}

}  // namespace reprise::report

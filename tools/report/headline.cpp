// The cards at the top of the report, and the one line for the terminal.
#include <fmt/core.h>

#include <algorithm>

#include "preload/base/readable.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/measured.h"
#include "tools/report/log/shortages.h"
#include "tools/report/report.h"
#include "tools/report/sentences.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

Json card(const std::string& label, const std::string& value, const std::string& detail, const char* tone = "plain") {
  return {{"label", label}, {"value", value}, {"detail", detail}, {"tone", tone}};
}

// Tensors that fit lie in whole chunks, which may be more than they ask for.
std::string before_words(uint64_t after, uint64_t before, bool tensors_alone) {
  if (tensors_alone && after <= before) return fmt::format("for tensors of {}", format_bytes(before));
  if (before == 0) return "what the program had asked for is not known";
  if (after > before) return fmt::format("for tensors of {}, in whole chunks", format_bytes(before));
  return fmt::format("was {} ({})", format_bytes(before), percent_that_holds(after, before));
}

// Where there was a run, only what it did is shown, never what was predicted.
Json memory_card(const Inputs& inputs, const Facts& facts) {
  const bool ran = inputs.log != nullptr;
  if (ran && inputs.log->not_managed) {
    return card("Peak device memory", facts.peak_before == 0 ? "not known" : format_bytes(facts.peak_before),
                "not managed: without a budget", "bad");
  }
  const uint64_t after = ran ? facts.peak_actual : facts.peak_planned;
  if (ran && after == 0 && inputs.log->ended) {
    return card("Peak device memory", "0 B",
                fmt::format("the program had asked for {}", format_bytes(facts.peak_before)));
  }
  if (ran && after == 0) return card("Peak device memory", "not known", "the run log has no sample of it", "bad");
  if (after == 0) return card("Peak device memory", format_bytes(facts.peak_before), "without a budget");
  const std::string words = budget_words(inputs);
  const std::string budget = words.empty() ? "" : "; " + words;
  const bool over = budget_kept(facts) == BudgetKept::passed;
  return card(ran ? "Peak device memory" : "Peak device memory, planned", format_bytes(after),
              before_words(after, facts.peak_before, facts.tensors_alone) + budget, over ? "bad" : "good");
}

// Not where a plan was named that cannot be used, say, or the planner was not yet through.
bool has_no_iteration(const Inputs& inputs) {
  const std::optional<RunReason> last = has_plans(*inputs.log) ? std::nullopt : last_reason(inputs);
  return last && (tools::says(last->cause, run_log::on_demand::no_iteration) ||
                  tools::says(last->cause, run_log::on_demand::no_repetition));
}

// None was looked for in vain: one that was cut short may have had some.
bool found_none(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  return has_no_iteration(inputs) || (log.ended && log.reasons.empty() && !has_plans(log));
}

std::string against_computing(const Inputs& inputs, const Facts& facts) {
  if (facts.run_compute_ns > 0) {
    return fmt::format("; computing alone took {} in {}", format_duration(facts.run_compute_ns),
                       the_measured_one(inputs));
  }
  if (facts.compute_ns == 0) return "";
  return fmt::format("; computing alone took {} when recorded", format_duration(facts.compute_ns));
}

Json time_card_of_run(const Inputs& inputs, const Facts& facts) {
  const RunLog& log = *inputs.log;
  if (facts.actual_ns > 0) {
    std::string detail = fmt::format("median of {} planned", log.iterations_planned);
    if (facts.on_demand_ns > 0) detail += fmt::format(", on demand {}", format_duration(facts.on_demand_ns));
    return card("Time per iteration", format_duration(facts.actual_ns), detail + against_computing(inputs, facts));
  }
  if (facts.on_demand_ns > 0) {
    return card(repetitions(inputs).empty() ? "Time per iteration" : "Time per repetition",
                format_duration(facts.on_demand_ns), "on demand, without a plan" + against_computing(inputs, facts));
  }
  if (facts.total_ns > 0) return card("Time of the run", format_duration(facts.total_ns), "all of it on demand");
  return nullptr;
}

Json time_card(const Inputs& inputs, const Facts& facts) {
  if (inputs.log != nullptr) return time_card_of_run(inputs, facts);
  if (facts.predicted_ns == 0) return nullptr;
  return card("Time per iteration, predicted", format_duration(facts.predicted_ns),
              fmt::format("{} x computing alone ({})", decimal(share(facts.predicted_ns, facts.compute_ns), 1, 2),
                          format_duration(facts.compute_ns)));
}

Json moved_card(const std::string& label, uint64_t out, uint64_t back, const std::string& more) {
  return card(label, format_bytes(out + back),
              fmt::format("{} out, {} back{}", format_bytes(out), format_bytes(back), more));
}

// As the tables of waits add up.
std::string waited_words(const Inputs& inputs, const Facts& facts) {
  if (!facts.waited_for_copies_ns) return "";
  const uint64_t ns = *facts.waited_for_copies_ns;
  if (inputs.log == nullptr) {
    return ns == 0 ? "; computing would not wait for it"
                   : fmt::format("; computing would wait {} for it", format_duration(ns));
  }
  const std::string where =
      measured_time(inputs) ? fmt::format(" in iteration {}", *measured_iteration(*inputs.log)) : "";
  return ns == 0 ? "; computing did not wait for it" + where
                 : fmt::format("; computing waited {} for it{}", format_duration(ns), where);
}

Json moved_until_the_cut(const RunLog& log) {
  const char* const label = "Moved in all, on demand";
  if (!log.moved_bytes) return card(label, "not known", "the run log has no end");
  return card(label, (*log.moved_bytes == 0 ? "" : "at least ") + format_bytes(*log.moved_bytes),
              "as far as the run log goes");
}

Json traffic_card(const Inputs& inputs, const Facts& facts) {
  const std::string waited = waited_words(inputs, facts);
  if (inputs.log == nullptr) {
    if (inputs.plan == nullptr) return nullptr;
    return moved_card("Moved per iteration, predicted", inputs.plan->offload_bytes, inputs.plan->reload_bytes, waited);
  }
  if (inputs.log->not_managed) return nullptr;
  uint64_t planned = 0;
  uint64_t out = 0;
  uint64_t back = 0;
  for (const RunIteration& it : inputs.log->iterations) {
    if (!it.planned) continue;
    ++planned;
    out += it.offload_bytes;
    back += it.reload_bytes;
  }
  if (planned == 0 && !inputs.log->ended) return moved_until_the_cut(*inputs.log);
  if (planned > 0) {
    const uint64_t left = left_of_planned_copies(inputs);
    const std::string less =
        left == 0 ? "" : fmt::format("; {} less than planned, as the host had them already", format_bytes(left));
    return moved_card("Moved per planned iteration", out / planned, back / planned, less + waited);
  }
  return moved_card("Moved in all, on demand", inputs.log->offload_bytes, inputs.log->reload_bytes, "");
}

std::string times_of_run(const Facts& facts) {
  if (facts.total_ns == 0) return "";
  if (facts.before_plan_ns == 0) return fmt::format("; {} in all", format_duration(facts.total_ns));
  return fmt::format("; {} of {} passed before the plan", format_duration(facts.before_plan_ns),
                     format_duration(facts.total_ns));
}

// Behind its last iteration every program goes on with something else: nothing went wrong there.
std::string left_words(const RunLog& log) {
  const uint64_t halfway = log.left.count - (log.left.last_ended_loop ? 1 : 0);
  return (halfway > 0 ? fmt::format(", {} not finished", halfway) : "") +
         (log.left.last_ended_loop ? ", 1 that the end of the loop cut short" : "");
}

Json run_card(const Inputs& inputs, const Facts& facts) {
  if (inputs.log == nullptr || inputs.log->not_managed) return nullptr;
  const RunLog& log = *inputs.log;
  if (all_iterations(log) == 0) {
    return card("Iterations", found_none(inputs) ? "none found" : "not known",
                (log.moved_bytes == 0 ? "nothing moved" : "memory managed on demand") + times_of_run(facts));
  }
  if (const std::string what = repetitions(inputs); !what.empty()) {
    const char* const none = "a part of what the program does, and no iteration";
    const char* const not_known = "what an iteration of the program is, its trace would tell";
    return card("What repeats", what,
                fmt::format("on demand; {}{}", has_no_iteration(inputs) ? none : not_known, times_of_run(facts)));
  }
  const std::string loops = of_loops(log);
  return card("Iterations", fmt::format("{} of {} planned", log.iterations_planned, all_iterations(log)),
              fmt::format("{}{} on demand{}{}; {} divergence{}", loops.empty() ? "" : loops.substr(1) + ": ",
                          log.iterations_on_demand, left_words(log), times_of_run(facts), log.divergence_count,
                          log.divergence_count == 1 ? "" : "s"),
              log.iterations_planned > 0 ? "good" : "plain");
}

Json safety_card(const Inputs& inputs) {
  if (inputs.log == nullptr || inputs.log->safety.empty()) return nullptr;
  const bool strict = tools::says(inputs.log->safety, run_log::start::strict);
  const bool audited = tools::says(inputs.log->safety, run_log::start::audited);
  const bool proven = tools::says(inputs.log->safety, run_log::start::proven);
  // A log that was cut short does not say how many there were in all.
  const std::string calls =
      inputs.log->ended ? fmt::format("; {} memory-mapping calls in all", inputs.log->vmm_calls) : "";
  return card("Safety", inputs.log->safety,
              fmt::format("{}{}",
                          strict    ? "unseen accesses are right or fault"
                          : proven  ? "kernels are proven to make no unseen access, or such are right or fault"
                          : audited ? "unseen accesses of kernels that are not audited are right or fault"
                                    : "unseen accesses may get wrong bytes",
                          calls));
}

}  // namespace

Json cards_section(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  Json cards = Json::array();
  for (Json& one : std::vector<Json>{memory_card(inputs, facts), time_card(inputs, facts), traffic_card(inputs, facts),
                                     run_card(inputs, facts), safety_card(inputs)}) {
    if (!one.is_null()) cards.push_back(std::move(one));
  }
  return cards;
}

namespace {

// Its kernels took what they took: the iteration that was measured is compared with itself, not with the median.
std::string measured_words(const Inputs& inputs, const Facts& facts) {
  if (facts.run_compute_ns == 0) return "";
  if (facts.run_wall_ns < facts.run_compute_ns) return "";
  const RunIteration* const whole = planned_iteration(*inputs.log, facts.run_iteration);
  const bool repeats = whole != nullptr && whole->repeated_launches > 0;
  return fmt::format(" (iteration {}: {}, {} of it computing{})", facts.run_iteration,
                     format_duration(facts.run_wall_ns), format_duration(facts.run_compute_ns),
                     repeats ? ", without what was computed again" : "");
}

// But for what stderr has had while the program ran.
std::string reason_for_the_terminal(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  if (inputs.reason_is_told || log.iterations_planned > 0) return "";
  if (const auto last = last_reason(inputs); log.activation_count == 0 && last) {
    const auto is = [&](const auto& word) { return tools::says(last->cause, word); };
    if (is(run_log::on_demand::fits)) return ", as nothing has to move";
    // Of these stderr has it at the program's end.
    const bool of_the_end = is(run_log::on_demand::too_small) || is(run_log::on_demand::no_room);
    const bool told = (of_the_end && log.ended) || is(run_log::on_demand::no_plan);
    if (inputs.ran_here && told) return "";
  }
  const std::string why = why_unplanned(inputs);
  return why.rfind('(', 0) == 0 ? " " + why : fmt::format(" ({})", why);  // it is redacted
}

// What the program took, and what it had asked for.
std::string memory_words(const Inputs& inputs, const Facts& facts) {
  const bool ran = inputs.log != nullptr;
  if (std::string ended = ending_words(inputs); !ended.empty()) return ended;
  const uint64_t after = ran ? facts.peak_actual : facts.peak_planned;
  const std::string asked = format_bytes(facts.peak_before);
  if (std::string none = ran ? no_memory_words(*inputs.log) : ""; !none.empty()) return none;
  if (ran && after == 0 && inputs.log->ended)
    return fmt::format("peak 0 B, of {} that the program had asked for", asked);
  const std::string graphs =
      ran && inputs.log->graph_bytes > 0
          ? fmt::format(", of which CUDA graphs hold {} that cannot be moved", format_bytes(inputs.log->graph_bytes))
          : "";
  return "peak " + (after > 0 ? peak_words(after, facts.peak_before, facts.tensors_alone) : asked) + graphs;
}

std::string summary_unmanaged(const Inputs& inputs, const Facts& facts) {
  const std::string peak = facts.peak_before == 0 ? "" : fmt::format("peak {}, ", format_bytes(facts.peak_before));
  const std::string why = inputs.ran_here ? "" : fmt::format(" ({})", *inputs.log->not_managed);
  return fmt::format("{}without a budget: device memory could not be managed{}{}", peak, why,
                     inputs.ending.empty() ? "" : "; the program ended with " + inputs.ending);
}

// What a run without a plan took, and what it moved for it.
std::string on_demand_words(const Inputs& inputs, const Facts& facts) {
  const RunLog& log = *inputs.log;
  const uint64_t moved = log.offload_bytes + log.reload_bytes;
  const std::string of_it =
      facts.compute_ns == 0 ? "" : fmt::format(" ({} of it computing)", format_duration(facts.compute_ns));
  std::string words;
  if (facts.on_demand_ns > 0) {
    words = fmt::format(", {} per {} on demand{}", format_duration(facts.on_demand_ns),
                        repetitions(inputs).empty() ? "iteration" : "repetition", of_it);
  } else if (facts.total_ns > 0) {
    words = fmt::format(", {} in all", format_duration(facts.total_ns));
  }
  return moved == 0 ? words : fmt::format("{}, {} moved", words, format_bytes(moved));
}

std::string summary_of_program(const Inputs& inputs) {
  const Facts facts = collect_facts(inputs);
  if (inputs.log != nullptr && inputs.log->not_managed) return summary_unmanaged(inputs, facts);
  const bool ran = inputs.log != nullptr;
  std::string line = memory_words(inputs, facts);
  if (ran && facts.actual_ns > 0) {
    line += fmt::format(", {} per iteration", format_duration(facts.actual_ns));
    line += measured_words(inputs, facts);
  } else if (ran) {
    line += on_demand_words(inputs, facts);
  } else if (!ran && facts.predicted_ns > 0) {
    line += fmt::format(", {} per iteration predicted", format_duration(facts.predicted_ns));
  }
  if (!ran) return line;
  const RunLog& log = *inputs.log;
  const std::string repeated = repetitions(inputs);
  if (all_iterations(log) == 0 || (!repeated.empty() && has_no_iteration(inputs))) {
    line += found_none(inputs) ? ", no iteration found to plan" : ", no iteration planned";
    return line + reason_for_the_terminal(inputs);
  }
  if (!repeated.empty()) {
    return fmt::format("{}, no iteration planned{}; it was seen to repeat {}", line, reason_for_the_terminal(inputs),
                       repeated);
  }
  line += fmt::format(", {} of {} iterations{} planned", log.iterations_planned, all_iterations(log), of_loops(log));
  return line + reason_for_the_terminal(inputs);
}

}  // namespace

std::string make_summary(const Inputs& inputs) {
  std::string summary = summary_of_program(inputs);
  if (const std::string calls = inputs.log == nullptr ? "" : calls_without_memory(*inputs.log); !calls.empty()) {
    summary += "; there was no memory for " + calls;
  }
  if (const std::string command = command_words(inputs); !command.empty()) summary += "; " + command;
  if (!is_of_one_of_several(inputs)) return summary;
  return fmt::format("of {}, which {}: {}", command_of(*inputs.log), which_one(inputs.log->chosen), summary);
}

}  // namespace reprise::report

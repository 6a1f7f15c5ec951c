// How the run went: was there an iteration, when did its plan come in force, when and why did the program diverge from
// it, how did the program go on.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/arrivals.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/reasons.h"
#include "tools/report/sentences.h"

namespace reprise::report {
namespace {

using tools::format_duration;

// Template arguments of a kernel can fill a page; the tables have the whole name.
std::string short_name(const std::string& name) {
  const std::string plain = demangle(name);
  return plain.size() > 60 ? plain.substr(0, 57) + "..." : plain;
}

// " 1.20 s after the first CUDA call"; empty when the log does not say.
std::string since_start(const RunLog& log, uint64_t at_ns) {
  if (log.start_ns == 0 || at_ns < log.start_ns) return "";
  return fmt::format(" {} after the first CUDA call", format_duration(at_ns - log.start_ns));
}

std::string an_iteration(const Inputs& inputs) {
  if (inputs.iteration_calls == 0) return "";
  return fmt::format(" of an iteration of {}{}", plural(inputs.iteration_calls, "call"),
                     inputs.iteration_covers.empty() ? "" : ", which covers " + inputs.iteration_covers + ",");
}

std::string recorded(const Inputs& inputs) {
  return fmt::format("{} of {}{}", plural(inputs.iterations_recorded, "complete iteration"),
                     plural(inputs.iteration_calls, "call"),
                     inputs.iteration_covers.empty() ? "" : " (" + inputs.iteration_covers + ")");
}

bool same_subject(const RunReason& a, const RunReason& b) { return a.plan == b.plan; }

// Of each plan, and of having none, the last reason: those before it were overtaken.
std::vector<std::pair<RunReason, uint64_t>> last_reasons(const RunLog& log) {
  std::vector<std::pair<RunReason, uint64_t>> last;
  for (const RunReason& one : log.reasons) {
    const auto found =
        std::find_if(last.begin(), last.end(), [&](const auto& other) { return same_subject(other.first, one); });
    if (found == last.end()) {
      last.emplace_back(one, 1);
    } else {
      found->second = found->first.reason == one.reason ? found->second + 1 : 1;
      found->first = one;
    }
  }
  return last;
}

std::string times(uint64_t count) { return count == 1 ? "once" : fmt::format("{} times", count); }

// The loop was over before an iteration that the plan could rule was.
bool is_too_late(const RunReason& one) { return one.plan && tools::says(one.cause, run_log::on_demand::unfinished); }

bool ended_well(const RunLog& log) { return log.ended && log.ending.empty(); }

// Where nothing was moved: it may have had to be, and could not.
std::string unmoved_words(const RunLog& log) {
  if (log.host_full) return "Nothing was moved: host memory had no room for what would have been off the device.";
  if (!log.shortages.empty()) return "Nothing was moved.";
  return ended_well(log) ? "Nothing had to be moved all the same." : "Nothing had to be moved until then.";
}

// What that meant; of a log that was cut short, what was moved may not be known.
std::string on_demand_words(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  if (log.moved_bytes == 0) return unmoved_words(log);
  const BudgetKept kept = budget_kept(collect_facts(inputs));
  return fmt::format("So {} on demand until {}, which {}.",
                     log.moved_bytes ? "tensors were moved" : "memory was managed",
                     ended_well(log) ? "the end" : "then",
                     kept == BudgetKept::kept     ? "keeps the budget but hides no transfer"
                     : kept == BudgetKept::passed ? "hides no transfer, and the budget was not kept"
                                                  : "hides no transfer");
}

// As the replay wrote it where it decided.
void say_reason(const Inputs& inputs, const RunReason& one, uint64_t count, Sentences& say) {
  const ReasonRow& row = row_of(one, inputs.log->mode);
  say.add(row.tone, fmt::format(fmt::runtime(row.sentence), fmt::arg("plan", one.plan.value_or(0) + 1),
                                fmt::arg("times", times(count)), fmt::arg("reason", one.reason),
                                fmt::arg("then", on_demand_words(inputs))));
}

std::string left_at(const RunDivergence& left, const Inputs& inputs) {
  if (left.expected.empty() && left.got.empty()) return left.reason;
  const std::string of = inputs.iteration_calls > 0 ? fmt::format(" of {}", inputs.iteration_calls) : "";
  return fmt::format("at call {}{}: expected {}, got {}{}", left.call, of, short_name(left.expected),
                     short_name(left.got), difference_of(left));
}

void say_unplanned(const Inputs& inputs, Sentences& say) {
  const RunLog& log = *inputs.log;
  if (log.not_managed) return;  // which is said first of all
  const bool of_plans = has_plans(log);
  for (const auto& [one, count] : last_reasons(log)) {
    if (of_plans && !one.plan) continue;                         // a plan came after all
    if (is_too_late(one) && log.activation_count > 0) continue;  // below
    say_reason(inputs, as_known(inputs, one), count, say);
  }
  if (of_plans && log.activation_count == 0) say.note(on_demand_words(inputs));
  if (log.activation_count > 0) {
    say.note(fmt::format("No iteration ran by a plan from start to end: {}.", why_unplanned(inputs)));
  } else if (const auto last = last_reason(inputs); log.reasons.empty() && last) {
    say_reason(inputs, *last, 1, say);
  } else if (log.reasons.empty()) {
    say.note(fmt::format("No plan was in force during this run, so memory was managed on demand: {}.",
                         why_unplanned(inputs)));
  }
  if (!of_plans && inputs.iterations_recorded > 0) {
    say.note(fmt::format("The recording holds {}.", recorded(inputs)));
  }
}

std::string first_divergence(const RunDivergence& first) {
  if (first.expected.empty() && first.got.empty()) {
    return fmt::format(" (first in iteration {}: {})", first.iteration, first.reason);
  }
  return fmt::format(" (first in iteration {}, call {}: expected {}, got {}{})", first.iteration, first.call,
                     short_name(first.expected), short_name(first.got), difference_of(first));
}

// After its last iteration every program goes on with something else.
bool only_left_its_loop(const RunLog& log) {
  if (log.divergence_count != 1 || log.divergences.size() != 1 || log.iterations.empty()) return false;
  return log.divergences.front().iteration > log.iterations.back().index;
}

std::string returns(const RunLog& log) {
  const auto resumed =
      static_cast<uint64_t>(std::count_if(log.divergences.begin(), log.divergences.end(),
                                          [](const RunDivergence& one) { return one.resumed.has_value(); }));
  return resumed == 0 ? "never came back to it" : "came back to it " + times(resumed);
}

// How much longer all iterations on demand took than planned ones would have.
void say_time_lost(const Inputs& inputs, Sentences& say) {
  const RunLog& log = *inputs.log;
  const Facts facts = collect_facts(inputs);
  if (facts.before_plan_ns == 0 || facts.total_ns == 0) return;
  uint64_t timed = 0;
  uint64_t took_ns = 0;
  for (const RunIteration& it : log.iterations) {
    if (it.planned || it.wall_ns == 0) continue;
    ++timed;
    took_ns += it.wall_ns;
  }
  std::string lost;
  if (timed > 0 && facts.actual_ns > 0 && took_ns > timed * facts.actual_ns) {
    const std::string all = timed < log.iterations_on_demand ? fmt::format(" of {}", log.iterations_on_demand) : "";
    const std::string which =
        fmt::format("{}{} iteration{} on demand", timed, all, timed == 1 && all.empty() ? "" : "s");
    lost = fmt::format(" {} took {} in all, planned ones {} each: at least {} were lost to having no plan.", which,
                       format_duration(took_ns), format_duration(facts.actual_ns),
                       format_duration(took_ns - timed * facts.actual_ns));
  }
  say.note(fmt::format("The run took {} in all, {} of it ({}) before the plan was in force.{}",
                       format_duration(facts.total_ns), format_duration(facts.before_plan_ns),
                       whole_percent(facts.before_plan_ns, facts.total_ns), lost));
}

}  // namespace

bool has_plans(const RunLog& log) {
  return log.plan_count > 0 || log.activation_count > 0 ||
         std::any_of(log.reasons.begin(), log.reasons.end(), [](const RunReason& one) { return one.plan.has_value(); });
}

std::string repetitions(const Inputs& inputs) {
  const RunLog* const log = inputs.log;
  if (log == nullptr || inputs.trace != nullptr || inputs.plan != nullptr || has_plans(*log) || log->recorded)
    return "";
  if (log->iterations_planned + log->left.count > 0) return "";
  const uint64_t count = all_iterations(*log);
  if (count == 0) return "";
  std::set<uint64_t> calls;
  for (const RunIteration& one : log->iterations) calls.insert(one.calls);
  for (const RunRepeats& one : log->repeats) calls.insert(one.calls);
  calls.erase(0);  // not said, in old logs
  const std::string range = calls.empty() ? "some calls"
                            : *calls.begin() == *calls.rbegin()
                                ? plural(*calls.begin(), "call")
                                : fmt::format("{} to {} calls", *calls.begin(), *calls.rbegin());
  return fmt::format("{} in a row, {}", range, times(count));
}

Json repetitions_section(const Inputs& inputs) { return repetitions(inputs); }

Json iterations_in_all_section(const Inputs& inputs) { return inputs.log != nullptr ? all_iterations(*inputs.log) : 0; }

bool died_of_full_host(const Inputs& inputs) {
  return inputs.log != nullptr && inputs.log->host_full && !inputs.ending.empty();
}

std::string full_host_words(const RunHostFull& full) {
  const std::string needed = tools::format_bytes(full.needed_bytes);
  if (full.needed_bytes <= full.host_bytes) {
    return fmt::format("what was off the device needed {} of host memory, and the system did not give as much", needed);
  }
  return fmt::format("what was off the device needed at least {} of host memory, and {} are allowed", needed,
                     tools::format_bytes(full.host_bytes));
}

bool lacks_plan(const Inputs& inputs) {
  return inputs.log != nullptr && inputs.plan == nullptr && inputs.log->plan_count > 0;
}

// One that was given to the run needs no keeping.
std::string plan_is_lacking(const Inputs& inputs) {
  const char* const how =
      inputs.log->mode == "replay"
          ? "give `report` that file, too, which --plan or REPRISE_PLAN named"
          : "`reprise run --save-plan FILE` keeps it, and the run log says where; with LD_PRELOAD alone REPRISE_KEEP=1 "
            "keeps it beside the trace";
  return fmt::format(
      "the plan of this run is not among the files, so there is no table of what each tensor costs, nor waits, nor "
      "predicted times: {}",
      how);
}

namespace {
// What a program would have repeated that got none is not known. Empty: it got all.
std::string without_memory(const Inputs& inputs) {
  if (inputs.log != nullptr && !inputs.log->shortages.empty()) {
    return "a call got no memory before an iteration was found";
  }
  return died_of_full_host(inputs) ? "the program got no memory before an iteration was found" : "";
}

// The program could not say why there was no plan, or what it said last was of a part of what it did.
RunReason reason_at_the_cut(const Inputs& inputs) {
  const uint64_t budget = collect_facts(inputs).budget;
  if (budget > 0 && inputs.minimum_bytes > budget) {
    return {run_log::on_demand::too_small.name,
            fmt::format("no plan fits into the budget of {} bytes ({}): at least {} bytes ({}) are needed", budget,
                        tools::format_bytes(budget), inputs.minimum_bytes, tools::format_bytes(inputs.minimum_bytes)),
            {},
            inputs.minimum_bytes};
  }
  return {run_log::on_demand::unfinished.name, inputs.ending.empty() ? "the run log ends before a plan was made"
                                                                     : "the program was ended before a plan was made"};
}
}  // namespace

std::string why_unplanned(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  if (log.activation_count > 0) {
    const auto left = std::find_if(log.divergences.rbegin(), log.divergences.rend(),
                                   [](const RunDivergence& one) { return !one.loop_end; });
    if (!log.reasons.empty() && is_too_late(log.reasons.back())) return log.reasons.back().reason;
    const std::string began = fmt::format("the plan came in force with iteration {}", log.first_activation);
    if (left == log.divergences.rend()) return began + ", and the program ended before that one was over";
    return fmt::format("{}, and the program left it {}", began, left_at(*left, inputs));
  }
  if (has_plans(log)) {
    const auto of_plan = std::find_if(log.reasons.rbegin(), log.reasons.rend(),
                                      [](const RunReason& one) { return one.plan.has_value(); });
    if (of_plan != log.reasons.rend()) return of_plan->reason;
    return "the plan was ready, and the program began no iteration that it could rule";
  }
  const std::optional<RunReason> last = last_reason(inputs);
  return last ? last->reason : "the run log does not say why";
}

std::optional<RunReason> last_reason(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  if (!log.reasons.empty()) return as_known(inputs, log.reasons.back());
  if (log.not_managed || has_plans(log)) return {};
  const RunReason known = as_known(inputs, {run_log::on_demand::no_repetition.name, ""});
  if (!known.reason.empty()) return known;
  if (log.ended) return {};
  return reason_at_the_cut(inputs);
}

RunReason as_known(const Inputs& inputs, const RunReason& reason) {
  RunReason known = reason;
  const auto is = [&](const auto& word) { return tools::says(reason.cause, word); };
  const bool of_repetition = is(run_log::on_demand::unfinished) || is(run_log::on_demand::no_iteration) ||
                             is(run_log::on_demand::no_repetition);
  if (reason.plan || !of_repetition) return known;
  if (const std::string lacked = without_memory(inputs); !lacked.empty()) {
    known.reason = lacked;
    return known;
  }
  if (!inputs.no_iteration.empty()) {
    known.cause = run_log::on_demand::no_iteration.name;
    known.reason = inputs.no_iteration;
    return known;
  }
  // The planner had found none by then, and there is one.
  const bool is_recorded = inputs.log->recorded && inputs.log->recorded->iterations > 0;
  const bool is_overtaken = !inputs.log->ended && is_recorded && !is(run_log::on_demand::unfinished);
  return is_overtaken ? reason_at_the_cut(inputs) : known;
}

std::optional<RunReason> found_in_recording(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  if (log.not_managed || has_plans(log)) return {};
  std::optional<RunReason> known = last_reason(inputs);
  if (known && !log.reasons.empty() && known->reason == log.reasons.back().reason) return {};
  return known;
}

void say_plan_state(const Inputs& inputs, Sentences& say) {
  if (lacks_plan(inputs)) {
    std::string text = plan_is_lacking(inputs);
    text[0] = 'T';
    say.note(text + ".");
  }
  if (inputs.log != nullptr) {
    if (inputs.log->iterations_planned == 0) say_unplanned(inputs, say);
    for (const auto& [one, count] : last_reasons(*inputs.log)) {
      if (inputs.log->iterations_planned > 0 && one.plan) say_reason(inputs, one, count, say);
    }
    return;
  }
  if (inputs.plan != nullptr) {
    say.note("There is no run log: times and memory of the plan are predictions.");
  } else if (!inputs.no_iteration.empty()) {
    say.note(fmt::format("Nothing can be planned: {}.", inputs.no_iteration));
  } else {
    say.note(fmt::format("This is a recording only{}. Make a plan to see what a budget would cost.",
                         inputs.iterations_recorded > 0 ? ", of " + recorded(inputs) : ""));
  }
}

void say_plan_in_force(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->activation_count == 0) return;
  const RunLog& log = *inputs.log;
  const std::string ready =
      log.plans.kept ? " was kept from an earlier run" : " was ready" + since_start(log, log.plan_at_ns);
  say.note(
      fmt::format("The plan{}{} and came in force{} with iteration {}. Until then memory was managed on "
                  "demand. {} of {} ran by the plan from start to end.",
                  an_iteration(inputs), ready, since_start(log, log.activation_at_ns), log.first_activation,
                  log.iterations_planned, plural(all_iterations(log), "iteration") + of_loops(log)));
  say_time_lost(inputs, say);
  if (log.plan_count > 1) {
    say.note(fmt::format("{} plans were made in all, for the program has several loops; this report shows the first.",
                         log.plan_count));
  }
  if (log.ended && log.in_force_at_end) {
    say.note("The program ended while the plan was in force: in the middle of an iteration, or right behind one.");
  }
}

void say_looked_ahead(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || !inputs.log->look_ahead) return;
  const RunLookAhead& ahead = *inputs.log->look_ahead;
  const uint64_t calls = ahead.in_time + ahead.late + ahead.missed;
  if (calls == 0 || ahead.late + ahead.missed == 0) return;
  say.note(fmt::format(
      "While no plan was in force, tensors moved ahead of the calls: {} of {} that work on memory found theirs on the "
      "device, {} waited for what was on its way, {} for what nobody had expected. {} of the calls came as predicted.",
      whole_percent(ahead.in_time, calls), plural(calls, "call"), ahead.late, ahead.missed,
      whole_percent(ahead.foreseen, ahead.foreseen + ahead.unforeseen)));
  const Arrivals arrivals = arrivals_of(ahead.noted);
  if (arrivals.least == 0) return;
  say.note(fmt::format("What came back to the device then was {:.2f} times the least that these calls can do with.",
                       static_cast<double>(arrivals.came) / static_cast<double>(arrivals.least)));
}

void say_examined(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->examined.ns == 0) return;
  const RunLog& log = *inputs.log;
  say.note(fmt::format(
      "{} were launched again to find out what they do, {} in all, which took {}. `reprise facts` shows it.",
      plural(log.examined.names.size(), "kernel"), times(log.examined.launches), format_duration(log.examined.ns)));
}

void say_divergences(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->divergences.empty()) return;
  const RunLog& log = *inputs.log;
  if (log.divergence_count == 0) {
    say.note(
        fmt::format("Every iteration that began under the plan ran through by it. The program left its loop {} and {}; "
                    "what it did in between and behind it ran on demand.",
                    times(log.divergences.size()), returns(log)));
    return;
  }
  if (only_left_its_loop(log)) {
    const RunDivergence& last = log.divergences.front();
    say.note(
        fmt::format("Every iteration of the planned loop ran by the plan up to the end of the loop, or up to one that "
                    "the program did not finish: it left the plan in iteration {}, at call {}. What came then ran on "
                    "demand.",
                    last.iteration, last.call));
    return;
  }
  const auto first = std::find_if(log.divergences.begin(), log.divergences.end(),
                                  [](const RunDivergence& one) { return !one.loop_end; });
  say.note(
      fmt::format("{} the program did something else than in the recorded iteration{}. It {}. Evaluation phases and "
                  "last, smaller batches look like this. What lies in between ran on demand: slower{}.",
                  log.divergence_count == 1 ? "Once," : fmt::format("{} times,", log.divergence_count),
                  first == log.divergences.end() ? "" : first_divergence(*first), returns(log),
                  ended_well(log) ? ", with the same results" : ""));
}

}  // namespace reprise::report

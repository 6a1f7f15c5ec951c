// What to change, with numbers: each rule looks at the inputs and gives its advice with what it is worth, or nothing.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "analyzer/plan/vertex_kinds.h"
#include "preload/base/readable.h"
#include "preload/base/room_figures.h"
#include "preload/footprint/chunk_size.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/device/base/device_name.h"
#include "tools/report/curve/as_fast.h"
#include "tools/report/log/links.h"
#include "tools/report/log/reasons.h"
#include "tools/report/report.h"
#include "tools/report/sentences.h"
#include "tools/report/tensor_table.h"
#include "tools/report/view/frames.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;
using tools::typed_bytes;

struct Advice {
  double worth = 0;  // share of the time that it may save; above 1: without it nothing is planned
  std::string title;
  std::string detail;
  std::string command;
};
using Advices = std::vector<Advice>;

std::string of_peak(uint64_t bytes, uint64_t peak) {
  return peak < bytes ? "" : fmt::format(" ({} of the peak)", percent_that_holds(bytes, peak));
}

// No plan fits into what the device had room for.
bool lacked_room(const RunLog& log) {
  return !log.reasons.empty() && tools::says(log.reasons.back().cause, run_log::on_demand::no_room);
}

// What a budget can be of use on this device: all, where it has room for the one that there was.
uint64_t room_for_budgets(const Inputs& inputs) {
  const bool less = inputs.log != nullptr && inputs.log->room && inputs.log->room->room < collect_facts(inputs).budget;
  return less ? inputs.log->room->room : UINT64_MAX;
}

// Nothing ran by a plan, and not because one call alone was too much, or the program itself.
bool is_unplanned(const Inputs& inputs) {
  return inputs.log != nullptr && inputs.log->iterations_planned == 0 && inputs.log->shortages.empty() &&
         !died_of_full_host(inputs);
}

// Who holds it, where others do, and NVIDIA's tool knows the device.
std::string command_for_room(const RunLog& log) {
  const RoomFigures room = log.room.value_or(RoomFigures{});
  const bool held = room.total == 0 || room.elsewhere > 0;
  return held && log.device != sim::kDeviceName ? "nvidia-smi" : "";
}

void advise_shortage(const Inputs& inputs, Advices& list) {
  if (inputs.log == nullptr || inputs.log->shortages.empty()) return;
  const auto& all = inputs.log->shortages;
  const RunShortage& most = *std::max_element(
      all.begin(), all.end(), [](const RunShortage& a, const RunShortage& b) { return a.least_bytes < b.least_bytes; });
  if (most.least_bytes == 0) {
    const RoomFigures room = inputs.log->room.value_or(RoomFigures{});
    list.push_back(
        {4, "Run it where the device has room",
         fmt::format("{} works on {} at once, and the device had no room for that: {}. A larger budget is no "
                     "help: {}.",
                     most.call, format_bytes(most.needed_bytes), who_has_the_rest(room),
                     how_to_get_room(room, most.needed_bytes + inputs.log->outside_bytes)),
         command_for_room(*inputs.log)});
    return;
  }
  const uint64_t least = std::max(most.least_bytes, inputs.minimum_bytes);
  list.push_back({4, fmt::format("Give it at least {}", format_bytes(least)),
                  fmt::format("{} works on {} at once, and no smaller budget holds that. Calls behind it, which the "
                              "program did not come to, may need more.",
                              most.call, format_bytes(most.needed_bytes)),
                  "--budget " + typed_bytes(least)});
}

// Of one that went on the same may be of use: it frees what it can do without then.
void advise_host_memory(const Inputs& inputs, Advices& list) {
  if (inputs.log == nullptr || !inputs.log->host_full) return;
  const RunHostFull& full = *inputs.log->host_full;
  const double worth = died_of_full_host(inputs) ? 4 : 0.4;
  std::string why = full_host_words(full);
  why[0] = 'W';
  if (full.needed_bytes <= full.host_bytes) {
    list.push_back(
        {worth, "Run it where the host has more memory", why + ". A larger --budget leaves less to keep there.", ""});
    return;
  }
  list.push_back({worth,
                  fmt::format("Allow at least {} of host memory, or a larger budget", format_bytes(full.needed_bytes)),
                  fmt::format("{}. What the program did not come to may need more; without --host-memory 80 % of what "
                              "the host has available are allowed.",
                              why),
                  "--host-memory " + typed_bytes(full.needed_bytes)});
}

// Why is said where it is told what happened.
std::string no_plan_fits(uint64_t here, uint64_t least, uint64_t peak) {
  const bool alike = format_bytes(here) == format_bytes(least);  // rounded; what is typed is exact
  const std::string what = here == 0 ? "the budget" : alike ? fmt::format("{} bytes", here) : format_bytes(here);
  if (least != 0 && peak != 0 && least >= peak) {
    return fmt::format("No plan fits into {}, and with {} none is needed: nothing has to move then.", what,
                       format_bytes(least));
  }
  return fmt::format("No plan fits into {}, however long the program runs.", what);
}

// A budget that the device cannot give is not one to make larger, unless it is too small besides.
void advise_room(const Inputs& inputs, Advices& list) {
  if (!is_unplanned(inputs) || has_plans(*inputs.log) || !lacked_room(*inputs.log)) return;
  const RoomFigures room = inputs.log->room.value_or(RoomFigures{});
  const uint64_t least = inputs.log->reasons.back().least_bytes;
  const uint64_t budget = collect_facts(inputs).budget;
  const std::string had = fmt::format("A plan takes {} at the least, and the device had room for {}: {}.",
                                      format_bytes(least), format_bytes(room.room), who_has_the_rest(room));
  list.push_back({3.5, fmt::format("Run it where the device has room for {}", format_bytes(least)),
                  fmt::format("{} So {}.{}", had, how_to_get_room(room, least),
                              budget >= least ? "" : " The budget of " + format_bytes(budget) + " is less, too."),
                  budget >= least ? command_for_room(*inputs.log) : "--budget " + typed_bytes(least)});
}

// One of its calls works on more at once than the percentage is of, which is never less than that. 0: none does.
uint64_t needed_at_once(const Inputs& inputs) {
  if (inputs.log == nullptr || inputs.log->budget_percent == 0 || inputs.log->graph_bytes != 0) return 0;
  const Facts facts = collect_facts(inputs);
  return budget_kept(facts) == BudgetKept::passed ? facts.peak_actual : 0;
}

// Whatever else kept it from being planned: below the smallest budget nothing gets a plan.
void advise_budget(const Inputs& inputs, Advices& list) {
  if (!is_unplanned(inputs) || has_plans(*inputs.log) || lacked_room(*inputs.log)) return;
  const auto& reasons = inputs.log->reasons;
  const bool told = !reasons.empty() && tools::says(reasons.back().cause, run_log::on_demand::too_small);
  const Facts facts = collect_facts(inputs);
  const uint64_t here = facts.budget;
  const uint64_t least = std::max({inputs.minimum_bytes > here ? inputs.minimum_bytes : 0, needed_at_once(inputs),
                                   told ? reasons.back().least_bytes : 0});
  if (!told && (here == 0 || least == 0)) return;
  // Of one that ended before its time the peak is not known.
  const bool whole = inputs.ending.empty() && inputs.log->ended;
  const std::string share = whole ? of_peak(least, facts.peak_before) : "";
  const uint64_t peak = whole && !facts.tensors_alone ? facts.peak_before : inputs.peak_bytes;
  list.push_back({3.5,
                  least > 0 ? fmt::format("Give it at least {}{}", format_bytes(least), share) : "Give it more memory",
                  no_plan_fits(here, least, peak), least > 0 ? "--budget " + typed_bytes(least) : ""});
}

Advice advice_of(const ReasonRow& row) { return {3, row.title, row.detail, row.command}; }

// There was a plan, and no iteration ran by it from start to end.
void advise_after_plan(const Inputs& inputs, Advices& list) {
  if (!inputs.log->ended) return;  // it crashed: running longer is not its to choose
  list.push_back(advice_of(inputs.log->divergence_count > 1 ? unlike_plan_row() : too_late_row()));
}

// All that the program had fitted: a plan would have had nothing to do.
bool nothing_moved(const RunLog& log) { return log.peak_device_bytes > 0 && log.moved_bytes == 0; }

// Of one that was ready and had none.
Advice room_for_plan(const Inputs& inputs) {
  const RunLog& log = *inputs.log;
  const Facts facts = collect_facts(inputs);
  const uint64_t budget = facts.budget;
  if (!log.room || log.room->room >= budget) {
    const uint64_t least = std::max(inputs.minimum_bytes, inputs.plan == nullptr ? 0 : inputs.plan->minimum_bytes);
    if (budget != 0 && least > budget) {
      return {3, fmt::format("Give it at least {}{}", format_bytes(least), of_peak(least, facts.peak_before)),
              no_plan_fits(budget, least, facts.peak_before), "--budget " + typed_bytes(least)};
    }
    return {3, "Make room for the plan",
            "It was ready and had no room. A larger --budget or --host-memory leaves more, or make a plan for this "
            "budget.",
            ""};
  }
  const RoomFigures& room = *log.room;
  const bool smaller = inputs.minimum_bytes > 0 && inputs.minimum_bytes <= room.room;
  return {
      3, smaller ? "Plan for what the device has room for" : "Run it where the device has room for the plan",
      fmt::format("The plan was ready and had no room: the budget is {}, and the device had room for {}: {}. So {}{}.",
                  format_bytes(budget), format_bytes(room.room), who_has_the_rest(room), how_to_get_room(room, budget),
                  smaller ? ", or make a plan for what there was" : ""),
      smaller ? "--budget " + typed_bytes(room.room) : command_for_room(*inputs.log)};
}

void advise_unplanned(const Inputs& inputs, Advices& list) {
  if (!is_unplanned(inputs) || nothing_moved(*inputs.log)) return;
  const auto& reasons = inputs.log->reasons;
  if (has_plans(*inputs.log) && (reasons.empty() || !reasons.back().plan)) return advise_after_plan(inputs, list);
  const std::optional<RunReason> known = last_reason(inputs);
  if (!known) return;
  const auto is = [&](const auto& word) { return tools::says(known->cause, word); };
  if (is(run_log::on_demand::refused)) return list.push_back(room_for_plan(inputs));
  const ReasonRow& row = row_of(*known, inputs.log->mode);
  const bool repeats_too_little = is(run_log::on_demand::no_iteration) || is(run_log::on_demand::no_repetition);
  if ((row.needs_end && !inputs.log->ended) || (repeats_too_little && needed_at_once(inputs) != 0)) return;
  if (*row.title != '\0') list.push_back(advice_of(row));
}

// Then a smaller budget is no good advice, whatever was predicted.
bool waits_much(const Inputs& inputs) { return inputs.log != nullptr && stall_share(*inputs.log) > 0.05; }

std::string an_iteration_of(const Inputs& inputs) {
  if (inputs.one_loop || inputs.iteration_covers.empty()) return "An iteration";
  return fmt::format("The planned iteration, which covers {},", inputs.iteration_covers);
}

// What "full speed" is: the same margin as of what `simulate` recommends.
std::string within_of_alone() { return fmt::format("within {} % of computing alone", kAsFastPercent); }

// Plans are for whole chunks: what the budget has beyond the last one that `least` holds is of no use to one, and
// nothing is gained by giving it back.
bool holds_no_chunk_more(const Inputs& inputs, uint64_t least, uint64_t budget) {
  const uint64_t chunk = inputs.plan != nullptr  ? inputs.plan->chunk_bytes
                         : inputs.log != nullptr ? inputs.log->chunk_bytes
                                                 : 0;
  return budget >= least && budget - least < std::max<uint64_t>(chunk, 1);
}

// Full speed takes all that the iteration takes: there is nothing to plan with that.
bool needs_all(const BudgetCurve& curve) { return curve.peak_bytes > 0 && curve.full_speed_bytes >= curve.peak_bytes; }

std::string what_is_enough(const BudgetCurve& curve) {
  return (needs_all(curve) ? "all that it takes, as no smaller budget is " : "the smallest planned budget ") +
         within_of_alone();
}

// Of the budget or, where the device had less room than that, of what it had.
std::string what_can_shrink(const Inputs& inputs, uint64_t budget) {
  const uint64_t enough = inputs.curve.full_speed_bytes;
  const uint64_t room = room_for_budgets(inputs);
  if (room >= budget) {
    return fmt::format("The budget of {} can shrink by {}: {} is {}, {}.", format_bytes(budget),
                       format_bytes(budget - enough), format_bytes(enough), what_is_enough(inputs.curve),
                       with_whose_times(inputs));
  }
  return fmt::format(
      "What held was the device's room of {}, not the budget of {}: with {} less an iteration is still {}, as planned "
      "{}.",
      format_bytes(room), format_bytes(budget), format_bytes(room - std::min(room, enough)), within_of_alone(),
      with_whose_times(inputs));
}

void advise_full_speed(const Inputs& inputs, Advices& list) {
  const BudgetCurve& curve = inputs.curve;
  const Facts facts = collect_facts(inputs);
  const uint64_t here = facts.plan_budget != 0 ? facts.plan_budget : facts.budget;  // that the times are of
  if (curve.full_speed_bytes == 0 || is_recording_of_another_link(inputs)) return;
  if (facts.plan_budget != 0 && curve.full_speed_bytes <= facts.budget) return;  // another plan has it, as is advised
  const std::string budget = format_bytes(curve.full_speed_bytes) + of_peak(curve.full_speed_bytes, facts.peak_before);
  const bool planned = inputs.plan != nullptr && inputs.plan->budget_bytes == here;
  const uint64_t now = planned ? facts.predicted_ns : time_at(curve, here);
  const bool of_unknown_peak = inputs.log != nullptr && inputs.log->budget_percent > 0;
  if (here == 0 && (!inputs.one_loop || of_unknown_peak)) return;
  // Times at the budget say nothing of a run that the device gave less.
  if (room_for_budgets(inputs) < here && (is_unplanned(inputs) || room_for_budgets(inputs) < curve.full_speed_bytes))
    return;
  if (here == 0) {
    std::string what = what_is_enough(curve);
    what[0] = needs_all(curve) ? 'A' : 'T';
    list.push_back({0.5, fmt::format("{} for full speed", budget), what + ".",
                    needs_all(curve) ? "" : "--budget " + typed_bytes(curve.full_speed_bytes)});
  } else if (here < curve.full_speed_bytes && now > curve.compute_ns) {
    list.push_back({share(now - curve.compute_ns, now), fmt::format("{} for full speed", budget),
                    fmt::format("{} would take {} instead of {}, {}: {}.", an_iteration_of(inputs),
                                format_duration(time_at(curve, curve.full_speed_bytes)), format_duration(now),
                                with_whose_times(inputs), what_is_enough(curve)),
                    "--budget " + typed_bytes(curve.full_speed_bytes)});
  } else if (here > curve.full_speed_bytes + curve.full_speed_bytes / 20 && !waits_much(inputs) && inputs.one_loop &&
             !holds_no_chunk_more(inputs, curve.full_speed_bytes, here)) {
    list.push_back({0.02, fmt::format("{} would do", budget), what_can_shrink(inputs, here),
                    "--budget " + typed_bytes(curve.full_speed_bytes)});
  }
}

// The plan is for a part of the budget: what a plan for the whole budget, or none, is predicted to take.
std::string by_another_plan(const Inputs& inputs, const Facts& facts, bool all_fits, uint64_t then_ns) {
  if (then_ns == 0) return all_fits ? "" : " A plan for that may move less.";
  uint64_t moved = 0;
  for (const BudgetPoint& one : inputs.curve.points) {
    if (one.budget_bytes <= facts.budget) moved = one.moved_bytes;
  }
  const std::string now = format_duration(facts.predicted_ns);
  const std::string then = format_duration(then_ns);
  return fmt::format(" {} would take {}{}, {}.", all_fits ? "An iteration" : "By a plan for that, an iteration",
                     then == now ? "as long, " + now : then + " instead of " + now,
                     all_fits ? "" : fmt::format(" and move {}", format_bytes(moved)), with_whose_times(inputs));
}

void advise_whole_budget(const Inputs& inputs, Advices& list) {
  const Facts facts = collect_facts(inputs);
  if (facts.plan_budget == 0 || room_for_budgets(inputs) < facts.budget) return;
  const bool all_fits = facts.peak_before != 0 && facts.peak_before <= facts.budget;
  const uint64_t moved = inputs.plan == nullptr ? 0 : inputs.plan->offload_bytes + inputs.plan->reload_bytes;
  const uint64_t known = is_recording_of_another_link(inputs) ? 0 : time_at(inputs.curve, facts.budget);
  const uint64_t then = known != 0 && all_fits ? inputs.curve.compute_ns : known;
  const std::string fits = !all_fits ? ""
                                     : fmt::format(" The program takes {} at most, so within that nothing has to move.",
                                                   format_bytes(facts.peak_before));
  const std::string budget = "--budget " + typed_bytes(facts.budget);
  list.push_back({then == 0 || then >= facts.predicted_ns ? 0.02 : share(facts.predicted_ns - then, facts.predicted_ns),
                  all_fits ? "Run it without this plan" : "Plan for the budget of the run",
                  fmt::format("The plan is for {}, and its iterations use no more of the budget of {}{}.{}{}",
                              format_bytes(facts.plan_budget), format_bytes(facts.budget),
                              moved == 0 ? "" : fmt::format(": they move {} each", format_bytes(moved)), fits,
                              by_another_plan(inputs, facts, all_fits, then)),
                  all_fits ? fmt::format("reprise run {} -- program ...", budget)
                           : fmt::format("reprise plan a.trace {} -o new.plan", budget)});
}

void advise_smallest(const Inputs& inputs, Advices& list) {
  const uint64_t least = inputs.minimum_bytes > 0 ? inputs.minimum_bytes : inputs.curve.minimum_bytes;
  if (least == 0 || !inputs.one_loop || (inputs.log == nullptr && inputs.plan == nullptr && inputs.trace == nullptr))
    return;
  if (least > room_for_budgets(inputs)) return;
  const Facts facts = collect_facts(inputs);
  const bool there = holds_no_chunk_more(inputs, least, facts.budget);
  const std::string none =
      there && least != facts.budget
          ? fmt::format("No smaller budget has a plan, and one of {} leaves no chunk more", format_bytes(facts.budget))
          : "No smaller budget has a plan";
  const uint64_t time = is_recording_of_another_link(inputs) ? 0 : time_at(inputs.curve, least);
  list.push_back({0.01, fmt::format("{} at the least", format_bytes(least) + of_peak(least, facts.peak_before)),
                  time == 0 ? none + "."
                            : fmt::format("{}; there an iteration would take {}, {} x computing alone, {}.", none,
                                          format_duration(time), decimal(share(time, inputs.curve.compute_ns), 1, 2),
                                          with_whose_times(inputs)),
                  there ? "" : "--budget " + typed_bytes(least)});
}

// Is what tensors cost known of the run itself, or predicted?
bool costs_are_measured(const Inputs& inputs) {
  return inputs.log != nullptr && !measured_timeline(*inputs.plan, *inputs.log).bars.empty();
}

std::string computing_waits(const Inputs& inputs, uint64_t ns) {
  if (!costs_are_measured(inputs)) {
    return fmt::format("Computing would wait {} of each iteration, as predicted,", format_duration(ns));
  }
  return fmt::format("In the measured {}, computing stood still {}", the_measured_one(inputs), format_duration(ns));
}

void advise_tensor(const Inputs& inputs, Advices& list) {
  if (inputs.plan == nullptr) return;
  if (inputs.log != nullptr && inputs.log->iterations_planned == 0) return;  // the plan ruled nothing, and cost nothing
  const std::vector<TensorCost> costs = tensor_costs(inputs);
  uint64_t all = 0;
  for (const TensorCost& cost : costs) all += cost.wait_ns;
  if (all == 0) return;
  const std::vector<std::string> sites = tensor_sites(inputs);
  const std::set<std::string> passing = inputs.trace != nullptr ? passing_on(*inputs.trace) : std::set<std::string>();
  std::map<std::string, std::pair<uint64_t, uint64_t>> by_site;  // waiting, tensors
  for (const TensorCost& cost : costs) {
    if (cost.wait_ns == 0 || sites[cost.tensor].empty()) continue;
    auto& sum = by_site[own_frame(sites[cost.tensor], passing)];
    sum.first += cost.wait_ns;
    ++sum.second;
  }
  const uint64_t span = std::max(inputs.plan->predicted_ns, collect_facts(inputs).actual_ns);
  const auto worst = std::max_element(by_site.begin(), by_site.end(),
                                      [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
  if (worst != by_site.end() && worst->second.second > 1) {
    list.push_back({share(worst->second.first, span), fmt::format("{} costs most", short_frame(worst->first)),
                    fmt::format("{} for {} tensors that it asks for: {} % "
                                "of all waiting for tensors. Used closer together, freed earlier or made smaller, they "
                                "need not leave.",
                                computing_waits(inputs, worst->second.first), worst->second.second,
                                decimal(100 * share(worst->second.first, all), 1, 0)),
                    ""});
  }
  const TensorCost& first = costs.front();
  const std::string where =
      sites[first.tensor].empty() ? "" : ", allocated in " + short_frame(own_frame(sites[first.tensor], passing));
  list.push_back({share(first.wait_ns, span),
                  fmt::format("Tensor {} ({}) costs most of all tensors", first.tensor,
                              format_bytes(inputs.plan->tensors[first.tensor].size)),
                  fmt::format("{} for it ({} % of all waiting for tensors){}.", computing_waits(inputs, first.wait_ns),
                              decimal(100 * share(first.wait_ns, all), 1, 0), where),
                  ""});
}

// Chunks of a run grow with a budget that it knows when it starts.
void advise_bytes(const Inputs& inputs, Advices& list) {
  constexpr uint64_t kCallNs = 30'000;  // of one such call, on an H100 (decision 0037)
  if (inputs.log == nullptr || inputs.log->budget_percent == 0 || inputs.log->chunk_bytes == 0) return;
  const RunLog& log = *inputs.log;
  const uint64_t chunks = footprint::chunks_in_a_run(log.safety != "trusted");
  if (footprint::chunk_bytes_for(log.chunk_bytes, log.budget_bytes, chunks) == log.chunk_bytes) return;
  uint64_t calls = 0;
  uint64_t planned = 0;
  for (const RunIteration& iteration : log.iterations) {
    if (!iteration.planned || !iteration.counted) continue;
    calls += iteration.vmm_calls;
    ++planned;
  }
  if (planned == 0) return;
  const uint64_t whole = median_iteration_ns(log, true);
  const double taken = share(calls / planned * kCallNs, whole);
  if (taken < 0.1) return;
  list.push_back(
      {std::min(taken, 1.0), "Give the budget in bytes",
       fmt::format("Each planned iteration made {} memory-mapping calls, for chunks of {}. Where one takes {}, as "
                   "on an H100, that is {} of {}. Chunks are larger, and fewer, where the budget is known from the "
                   "start; that of a percentage is not.",
                   calls / planned, format_bytes(log.chunk_bytes), format_duration(kCallNs),
                   format_duration(calls / planned * kCallNs), format_duration(whole)),
       "--budget " + typed_bytes(log.budget_bytes)});
}

void advise_planning_first(const Inputs& inputs, Advices& list) {
  const Facts facts = collect_facts(inputs);
  if (inputs.log == nullptr || inputs.log->mode == "replay" || facts.before_plan_ns == 0) return;
  const double lost = share(facts.before_plan_ns, facts.total_ns);
  if (lost < 0.2) return;
  list.push_back(
      {lost / 2, "Plan once, use it often",
       fmt::format("{} of {} passed before the plan was in force. A plan that is made beforehand is in force from "
                   "the first iteration on.",
                   format_duration(facts.before_plan_ns), format_duration(facts.total_ns)),
       "reprise record; reprise plan; reprise replay"});
}

// What it moves, and when, was chosen for another one.
void advise_link(const Inputs& inputs, Advices& list) {
  if (!is_plan_for_another_link(inputs) || inputs.log->mode != "replay" || inputs.log->iterations_planned == 0) return;
  list.push_back(
      {0.1, "Plan for the link that it runs on",
       fmt::format("The plan is for a link of {}, and this run was on one of {}. What has to move, and when, "
                   "depends on that: a recording that is made here has the link of here.",
                   words_of(inputs.plan->link), words_of(link_of(*inputs.log))),
       "reprise record; reprise plan; reprise replay"});
}

// Of the plan's offloads, those for which the host may have the bytes from before: of what lives on from iteration to
// iteration, and of what has left already. More than these no fact saves where nothing is computed again.
uint64_t bytes_that_may_stay_away(const plan::Plan& plan) {
  std::vector<bool> left(plan.tensors.size(), false);
  uint64_t bytes = 0;
  for (const plan::Vertex& vertex : plan.vertices) {
    if (!plan::copies_out(vertex.kind)) continue;
    const plan::Tensor& tensor = plan.tensors[vertex.tensor];
    const bool known_there = tensor.allocate_call == plan::kNone || left[vertex.tensor];
    if (known_there && !vertex.clean) bytes += tensor.size;
    left[vertex.tensor] = true;
  }
  return bytes;
}

// Bytes of an iteration, to the host and left without a copy: measured where there are planned ones.
std::pair<uint64_t, uint64_t> out_and_spared(const Inputs& inputs) {
  uint64_t count = 0;
  uint64_t out = 0;
  uint64_t spared = 0;
  for (const RunIteration& one : inputs.log != nullptr ? inputs.log->iterations : std::vector<RunIteration>()) {
    if (!one.planned) continue;
    ++count;
    out += one.offload_bytes;
    spared += one.spared_bytes;
  }
  if (count == 0) return {inputs.plan->offload_bytes, 0};
  return {out / count, spared / count};
}

// What facts would buy depends on safety, which a plan does not hold: "" for nothing.
std::string worth_of_facts(const Inputs& inputs) {
  const auto [out, spared] = out_and_spared(inputs);
  const std::string all = format_bytes(out);
  // What the host has is found out by comparing, too, and needs no fact then.
  const uint64_t may = bytes_that_may_stay_away(*inputs.plan);
  const uint64_t some = std::min(out, may - std::min(may, spared));
  const std::string safety = inputs.log == nullptr ? "" : inputs.log->safety;
  if (tools::says(safety, run_log::start::strict)) {
    if (some == 0) return "";
    return fmt::format(
        "At most {} of the {} that go to the host in each iteration may then stay away, those that kernels only read.",
        format_bytes(some), all);
  }
  const std::string what =
      fmt::format("ome of the {} that go to the host in each iteration may then stay away or be computed again", all);
  if (!safety.empty()) return "S" + what + ".";
  return fmt::format("With --safety proven, audited or trusted s{}; with strict {} go all the same.", what,
                     some == 0 ? "they" : "most of them");
}

void advise_facts(const Inputs& inputs, Advices& list) {
  if (inputs.known_share < 0 || inputs.known_share > 0.5 || inputs.plan == nullptr) return;
  if (inputs.plan->offload_bytes == 0) return;
  const std::string worth = worth_of_facts(inputs);
  if (worth.empty()) return;
  list.push_back({0.015, "Let Reprise find out what kernels do",
                  fmt::format("That is known for {} of the computing; all other kernels are taken to change all that "
                              "they are given. {}",
                              decimal(100 * inputs.known_share, 1, 0) + " %", worth),
                  "reprise run --examine 60 ..."});
}

void advise_unmanaged(const Inputs& inputs, Advices& list) {
  uint64_t bytes = 0;
  std::string what;
  for (const Json& row : unmanaged_section(inputs)) {
    bytes += row.at("bytes").get<uint64_t>();
    what += (what.empty() ? "" : "; ") + row.at("what").get<std::string>();
  }
  const Facts facts = collect_facts(inputs);
  if (bytes == 0 || bytes < facts.peak_before / 50) return;
  list.push_back({0.03, fmt::format("{} stay outside", format_bytes(bytes)),
                  fmt::format("They cannot be moved: {}. \"Not managed\" below has each sort.", what), ""});
}

// No budget is of use then, and nothing else that a run is advised.
Json advice_to_manage(const std::string& reason) {
  const bool limited = reason.find("ulimit -v") != std::string::npos;
  return Json::array({{{"title", "Let device memory be managed"},
                       {"detail", fmt::format("It could not be: {}.", reason)},
                       {"command", limited ? "ulimit -v unlimited" : "reprise doctor"}}});
}

}  // namespace

Json advice_section(const Inputs& inputs) {
  if (inputs.log != nullptr && inputs.log->not_managed) return advice_to_manage(*inputs.log->not_managed);
  Advices list;
  for (const auto rule : {advise_shortage, advise_host_memory, advise_room, advise_budget, advise_unplanned,
                          advise_full_speed, advise_whole_budget, advise_smallest, advise_link, advise_tensor,
                          advise_bytes, advise_planning_first, advise_facts, advise_unmanaged}) {
    rule(inputs, list);
  }
  std::stable_sort(list.begin(), list.end(), [](const Advice& a, const Advice& b) { return a.worth > b.worth; });
  Json rows = Json::array();
  std::set<std::string> commands;  // the same to type is the same advice: what it is worth most for
  for (const Advice& one : list) {
    if (!one.command.empty() && !commands.insert(one.command).second) continue;
    rows.push_back({{"title", one.title}, {"detail", one.detail}, {"command", one.command}});
  }
  return rows;
}

}  // namespace reprise::report

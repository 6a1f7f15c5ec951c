// What happened, in plain sentences: each rule looks at the inputs and says its sentence, or nothing.
#include "tools/report/sentences.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "preload/base/readable.h"
#include "tools/cli/run_log_value.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/demangle.h"
#include "tools/report/log/links.h"
#include "tools/report/log/measured.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

void say_ending(const Inputs& inputs, Sentences& say) {
  const bool has_end = inputs.log == nullptr || inputs.log->ended || inputs.log->not_managed;
  if (!inputs.ending.empty()) {
    say.bad(fmt::format("The program ended with {}{}. The report covers what happened until then.", inputs.ending,
                        has_end ? "" : ", before Reprise could write its summary"));
  }
  if (std::string command = command_words(inputs); !command.empty()) {
    command[0] = 'T';
    say.note(command + ".");
  }
  if (inputs.cut_short && inputs.ending.empty()) {
    say.bad(
        "The recording is cut short: the program did not come to its end, or some of the file is missing. The report "
        "covers what is there.");
  }
  if (inputs.log != nullptr && inputs.log->not_managed) {
    say.bad(
        fmt::format("Device memory could not be managed: {}. The program ran as it does without Reprise: no budget was "
                    "kept, and nothing was moved.",
                    *inputs.log->not_managed));
  } else if (!has_end && inputs.ending.empty()) {
    say.bad(fmt::format("The run log has no end: {}. The report covers what happened until then.",
                        unseen_end(*inputs.log)));
  }
}

void say_which_program(const Inputs& inputs, Sentences& say) {
  if (!is_of_one_of_several(inputs)) return;
  const RunLog& log = *inputs.log;
  say.note(
      fmt::format("{}. This page is of the one that {}: {}. Beside it: {}. Each of them has a page of its own if it is "
                  "started by a "
                  "`reprise run` of its own.{}",
                  which_programs(log.chosen), why_this_one(log.chosen), command_of(log), others_in_words(log.others),
                  collect_facts(inputs).budget == 0
                      ? ""
                      : " Each has a budget of its own, so that several at once may hold more together."));
}

// A budget holds all the time, the device's room at the last look alone.
std::string above_room(const RunLog& log, uint64_t peak) {
  if (!log.room || log.room->total == 0 || peak <= log.room->room) return "";
  return fmt::format(
      ". That is more than the {} that the device had room for when that was looked at last: what is kept free for the "
      "driver is given to a call that works on more at once, and other programs may have taken memory since",
      format_bytes(log.room->room));
}

void say_budget(const Inputs& inputs, Sentences& say) {
  const Facts facts = collect_facts(inputs);
  const BudgetKept kept = budget_kept(facts);
  if (kept == BudgetKept::not_known) return;
  const auto [peak, budget] = peak_and_budget(facts);
  uint64_t least_bytes = std::max(facts.peak_actual, inputs.minimum_bytes);
  for (const RunShortage& shortage : inputs.log->shortages) least_bytes = std::max(least_bytes, shortage.least_bytes);
  const std::string least = least_bytes == facts.peak_actual ? peak : format_bytes(least_bytes);
  if (kept == BudgetKept::kept) {
    say.good(fmt::format("Device memory never exceeded the {}; the peak was {}{}.", budget_words(inputs, " of"),
                         format_bytes(facts.peak_actual), above_room(*inputs.log, facts.peak_actual)));
  } else if (inputs.log->graph_bytes > 0) {
    say.bad(fmt::format(
        "Device memory reached {}, above the budget of {}: CUDA graphs that allocate hold {} of it, which cannot be "
        "moved. Ask for at least {}.",
        peak, budget, format_bytes(inputs.log->graph_bytes), least));
  } else if (inputs.log->budget_percent == 0 && inputs.log->outside_bytes > 0) {
    say.bad(fmt::format(
        "Device memory reached {}, above the budget of {}: the program and the driver hold {} of it that cannot be "
        "moved. Ask for at least {}.",
        peak, budget, format_bytes(inputs.log->outside_bytes), least));
  } else if (inputs.log->budget_percent > 0 &&
             (inputs.minimum_bytes == 0 || facts.peak_actual <= inputs.minimum_bytes)) {
    say.bad(fmt::format(
        "{} % of the program's peak are {}: less than one of its calls works on at once, and a percentage is "
        "never less than that. {} were used at most; ask for at least {}.",
        inputs.log->budget_percent, budget, peak, least));
  } else {
    say.bad(fmt::format(
        "Device memory reached {}, which is above the budget of {}. This should never happen: please report it.", peak,
        budget));
  }
}

// Each look that came to nothing counts.
void say_not_scanned(const RunLog& log, Sentences& say) {
  if (log.buffers_not_scanned == 0) return;
  const bool one = log.buffers_not_scanned == 1;
  const bool trusted = tools::says(log.safety, run_log::start::trusted);
  say.note(fmt::format(
      "{} that may hold addresses could not be read{}: what kernels reach through {} is not known, and such an access "
      "{}.",
      one ? "A buffer" : "Buffers", one ? "" : fmt::format(", {} times", log.buffers_not_scanned), one ? "it" : "them",
      trusted ? "may get wrong bytes, and nothing says so; --safety strict tells" : "is right or faults"));
}

// What the run promised about memory that kernels reach through pointers in memory, and what that cost.
void say_safety(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->safety.empty()) return;
  // A log that was cut short does not say how many there were in all.
  const std::string calls =
      inputs.log->ended ? " That took " + plural(inputs.log->vmm_calls, "memory-mapping call") + " in all." : "";
  if (tools::says(inputs.log->safety, run_log::start::strict)) {
    say.good(fmt::format(
        "Safety strict: while a tensor's bytes were away its addresses led nowhere. A kernel that reached it "
        "by a pointer which Reprise had not seen would have faulted.{}",
        calls));
  } else if (!tools::says(inputs.log->safety, run_log::start::trusted)) {
    const bool audited = tools::says(inputs.log->safety, run_log::start::audited);
    say.good(fmt::format(
        "Safety {}: {} of the {} launches of the first plan {} to touch nothing but their operands. Where "
        "only such ran, addresses of what was away led to other tensors; elsewhere they led nowhere, as "
        "with strict.{}",
        inputs.log->safety, inputs.log->audited_launches, inputs.log->planned_launches,
        audited ? "were seen by `reprise audit`, or are proven by their code," : "are proven by their code", calls));
  } else {
    say.bad(fmt::format(
        "Safety trusted: while a tensor's bytes were away its addresses led to other tensors. A kernel that "
        "reached it by a pointer which Reprise had not seen got wrong bytes, and nothing says so; --safety strict "
        "tells.{}",
        calls));
  }
  say_not_scanned(*inputs.log, say);
}

// Where plans are of a part of what repeats, as of an evaluation between steps that train, what is moved may be moved
// elsewhere.
void say_moved_on_demand(const RunLog& log, Sentences& say) {
  if (!log.ended) return;
  uint64_t planned = 0;
  for (const RunIteration& it : log.iterations) planned += it.planned ? it.offload_bytes + it.reload_bytes : 0;
  const uint64_t all = log.offload_bytes + log.reload_bytes;
  if (all <= 2 * planned) return;
  say.note(fmt::format("On demand, outside of planned iterations, {} were moved; within them {}.",
                       format_bytes(all - planned), format_bytes(planned)));
}

double percent_more(uint64_t took_ns, uint64_t than_ns) {
  return 100 * (static_cast<double>(took_ns) / static_cast<double>(than_ns) - 1);
}

// The parts that it names add up to the iteration's time.
void say_where_time_went(const Inputs& inputs, Sentences& say) {
  const std::optional<TimeParts> time = measured_time(inputs);
  if (const std::string part = measured_in_part(*inputs.log); !part.empty()) {
    say.note(
        fmt::format("No whole iteration was measured: device times are of {}. What it took is not compared with "
                    "whole ones.",
                    part));
  }
  if (!time) return;
  std::string text = fmt::format("Iteration {}, which was measured, took {}: kernels {}", time->iteration,
                                 format_duration(time->whole_ns), format_duration(time->kernels_ns));
  if (const std::optional<BesideMedian> both = unlike_most(*inputs.log)) {
    say.note(
        fmt::format("Iteration {} took {}, and the median of the planned ones is {} ({} %): none that is closer to it "
                    "was measured. What this page says of waits and kernel times, and what it predicts and bounds with "
                    "these, is of that iteration, not of most.",
                    both->iteration, format_duration(both->wall_ns), format_duration(both->median_ns),
                    signed_decimal(percent_more(both->wall_ns, both->median_ns), 0)));
  }
  for (const WaitSum& wait : time->waits) text += fmt::format("; {}: {}", wait.what, format_duration(wait.ns));
  say.note(text + fmt::format("; {}: {}.", kRest, format_duration(time->rest_ns)));
}

void say_steady_state(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->iterations_planned == 0) return;
  uint64_t vmm = 0;
  for (const RunIteration& it : inputs.log->iterations) vmm += it.planned ? it.vmm_calls : 0;
  if (vmm == 0) say.good("Planned iterations made no memory-mapping call at all: tensors only moved by plain copies.");
  if (vmm > 0)
    say.note(fmt::format("Planned iterations made {}; each costs driver time.", plural(vmm, "memory-mapping call")));
  say_moved_on_demand(*inputs.log, say);
  if (const double share = stall_share(*inputs.log); share > 0) {
    const double measured = measured_stall_share(inputs);
    say.note(fmt::format(
        "The device waited during {} of the planned iterations' time{}: work was submitted, and none of it could run.",
        small_percent(share),
        measured < 0 ? "" : fmt::format(", and during {} of one that was measured", small_percent(measured))));
  }
  say_where_time_went(inputs, say);
}

// "(+2 %)", or that it says nothing; where it was faster, what it did not do that was predicted.
std::string against_prediction(const Inputs& inputs, uint64_t took_ns, uint64_t predicted_ns) {
  if (is_plan_for_another_link(inputs)) return " on another link";
  const uint64_t left = took_ns < predicted_ns ? left_of_planned_copies(inputs) : 0;
  return fmt::format(" ({} %{})", signed_decimal(percent_more(took_ns, predicted_ns), 0),
                     left == 0 ? "" : fmt::format("; {} less copied out than planned", format_bytes(left)));
}

// What the plan predicted is measured by the iteration whose kernel times it is predicted with, where there is one:
// those differ from run to run, and no plan makes them faster.
void say_retimed(const Inputs& inputs, const Facts& facts, Sentences& say) {
  const std::optional<TimeParts> measured = measured_time(inputs);
  say.note(fmt::format(
      "The plan predicts {} {}; when it was made, with kernel times as recorded until then, that was {}. Iteration {} "
      "took {}{}.",
      format_duration(facts.predicted_ns), with_whose_times(inputs), format_duration(inputs.made_predicted_ns),
      measured->iteration, format_duration(measured->whole_ns),
      against_prediction(inputs, measured->whole_ns, facts.predicted_ns)));
}

void say_prediction(const Inputs& inputs, Sentences& say) {
  const Facts facts = collect_facts(inputs);
  if (facts.actual_ns == 0 || facts.predicted_ns == 0) return;
  if (inputs.made_predicted_ns > 0 && measured_time(inputs)) return say_retimed(inputs, facts, say);
  say.note(fmt::format("An iteration took {}; the plan had predicted {}{}, {}.", format_duration(facts.actual_ns),
                       format_duration(facts.predicted_ns),
                       against_prediction(inputs, facts.actual_ns, facts.predicted_ns), with_whose_times(inputs)));
}

// What other commands predict of the same recording.
void say_other_times(const Inputs& inputs, Sentences& say) {
  if (inputs.recorded_compute_ns == 0 || inputs.plan == nullptr) return;
  const uint64_t made_with = inputs.made_compute_ns > 0 ? inputs.made_compute_ns : inputs.plan->compute_ns;
  if (made_with == inputs.recorded_compute_ns) return;
  say.note(fmt::format(
      "The plan was made with other kernel times than the recording has as a whole: an iteration computes for {} by "
      "the plan, for {} by the recording, which `reprise plan` and `simulate` predict with. A plan that is made while "
      "the program runs has the times of its first iterations.",
      format_duration(made_with), format_duration(inputs.recorded_compute_ns)));
}

void say_trace_state(const Inputs& inputs, Sentences& say) {
  if (inputs.trace == nullptr) return;
  if (!inputs.trace->tail.ok()) say.bad(fmt::format("The trace is not whole: {}.", inputs.trace->tail.message()));
  if (inputs.trace->dropped > 0) {
    say.bad(fmt::format("{} were lost while recording, because the disk was too slow.",
                        plural(inputs.trace->dropped, "record")));
  }
  if (const auto waits = inputs.trace->info.find("recorder.waits"); waits != inputs.trace->info.end()) {
    say.note(
        fmt::format("While it was recorded, the program waited {} times for the trace to be written.", waits->second));
  }
  if (inputs.trace->unknown > 0) {
    say.note(fmt::format("{} of a newer kind in the trace were skipped.", plural(inputs.trace->unknown, "record")));
  }
  if (inputs.trace->activities.empty()) {
    say.note("The trace has no device times: the recorded timeline shows when calls were made, not when they ran.");
  }
  if (inputs.no_lines) {
    say.note(
        "Call sites are without lines, and functions that a program does not export without names: libdw1 is not "
        "installed here.");
  }
}

// "0x1234 (libfoo.so)": nothing is known of this frame but where it is.
std::string file_of_bare_frame(const std::string& frame) {
  const size_t open = frame.find(" (");
  const bool bare = frame.rfind("0x", 0) == 0 && open != std::string::npos && frame.back() == ')';
  return bare ? frame.substr(open + 2, frame.size() - open - 3) : std::string();
}

// A program without a build id is known by its content.
std::set<std::string> files_without_build_id(const trace::Trace& trace) {
  const auto path = trace.info.find("program.path");
  const std::string program = path == trace.info.end() ? "" : path->second.substr(path->second.rfind('/') + 1);
  std::set<std::string> files;
  for (const std::string& site : trace.call_sites) {
    std::istringstream frames(site);
    for (std::string frame; std::getline(frames, frame);) {
      const std::string file = file_of_bare_frame(frame);
      if (!file.empty() && file != program && trace.info.count("module." + file) == 0) files.insert(file);
    }
  }
  return files;
}

void say_bare_frames(const Inputs& inputs, Sentences& say) {
  if (inputs.trace == nullptr || inputs.no_lines) return;
  constexpr size_t kMostNamed = 3;
  const std::set<std::string> files = files_without_build_id(*inputs.trace);
  if (files.empty()) return;
  std::string names;
  size_t named = 0;
  for (const std::string& file : files) {
    if (named++ < kMostNamed) names += (names.empty() ? "" : ", ") + file;
  }
  if (files.size() > kMostNamed) names += fmt::format(" and {} more", files.size() - kMostNamed);
  const bool one = files.size() == 1;
  say.note(fmt::format(
      "Calls of {} are shown as addresses: the recording has no build id of {}, so that {} file cannot be told from "
      "another one of its name. Where {} none, link {} with -Wl,--build-id.",
      names, one ? "it" : "them", one ? "its" : "such a", one ? "it has" : "they have", one ? "it" : "them"));
}

void say_opaque(const Inputs& inputs, Sentences& say) {
  if (inputs.plan == nullptr) return;
  const auto opaque = std::count_if(inputs.plan->calls.begin(), inputs.plan->calls.end(),
                                    [](const plan::Call& call) { return (call.flags & trace::kOpOpaque) != 0; });
  if (opaque == 0) return;
  say.note(
      fmt::format("{} of an iteration touch memory that cannot be seen from outside; around them everything is kept "
                  "on the device.",
                  plural(static_cast<uint64_t>(opaque), "call")));
}

void say_unmanaged(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || !inputs.log->ended) return;
  const Json rows = unmanaged_section(inputs);
  if (rows.empty()) {
    say.good("Everything that the program allocated on the device was managed.");
    return;
  }
  uint64_t bytes = 0;
  for (const Json& row : rows) bytes += row.at("bytes").get<uint64_t>();
  say.note(fmt::format("{} could not be managed; \"Not managed\" below says what and why.", format_bytes(bytes)));
}

std::string without_stop(std::string message) {
  if (!message.empty() && message.back() == '.') message.pop_back();
  return message;
}

// As they were printed: some begin with a name.
void say_messages(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr) return;
  const auto& all = inputs.log->messages;
  for (auto message = all.begin(); message != all.end(); ++message) {
    const bool again = std::find(all.begin(), message, *message) != message;
    const bool is_reason = std::any_of(
        inputs.log->reasons.begin(), inputs.log->reasons.end(),
        [&](const RunReason& one) { return message->find(demangle_words(one.reason)) != std::string::npos; });
    const std::optional<std::string>& unmanaged = inputs.log->not_managed;
    const bool is_said = is_reason || (unmanaged && message->find(*unmanaged) != std::string::npos);
    if (!again && !is_said) say.note(fmt::format("While it ran, Reprise said: {}.", without_stop(*message)));
  }
}

void say_other_link(const std::string& what, const plan::PlannedLink& link, const Inputs& inputs, Sentences& say) {
  say.note(fmt::format(
      "{} for a link of {}, and this run was on one of {}, {}: what is predicted for the one is not compared "
      "with what it took on the other.",
      what, words_of(link), words_of(link_of(*inputs.log)), kFarApart));
}

// What was measured of a run is not of that link.
void say_link(const Inputs& inputs, Sentences& say) {
  if (is_plan_for_another_link(inputs)) say_other_link("The plan is", inputs.plan->link, inputs, say);
  if (is_recording_of_another_link(inputs) &&
      (!is_plan_for_another_link(inputs) || inputs.plan->link != inputs.recorded_link)) {
    say_other_link("What is predicted of other budgets, and the bound, are", inputs.recorded_link, inputs, say);
  }
  if (!inputs.assumed_link.empty())
    say.note(fmt::format("Predicted times rest on an assumption: {}.", inputs.assumed_link));
}

}  // namespace

std::string others_in_words(const std::vector<std::string>& others) {
  constexpr size_t kMostNamed = 3;
  std::string words;
  for (size_t i = 0; i < others.size() && i < kMostNamed; ++i) words += (i == 0 ? "" : "; ") + others[i];
  if (others.size() > kMostNamed) words += fmt::format("; and {} more", others.size() - kMostNamed);
  return words;
}

std::string assumed_link(const plan::PlannedLink& link, const std::string& source, bool recorded) {
  if (!link.assumed) return {};
  const bool named = !link.machine.empty();
  return fmt::format(
      "{} does not say how fast the link is, and {} are assumed; {}give --machine a name or the file of `reprise "
      "doctor --measure FILE`",
      named ? link.machine : source, tools::format_link(link.h2d_bytes_per_s, link.d2h_bytes_per_s),
      recorded && !named ? "record again, which measures it, or " : "");
}

std::string times_of_more(const std::string& trace) {
  return fmt::format(
      "{}: recorded by a run that made a plan of its first iterations; kernel times here are of "
      "the last ones that it recorded, so that what is predicted may not be what that plan predicts",
      trace);
}

std::string plural(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Json sentences_section(const Inputs& inputs) {
  Sentences say;
  for (const auto rule :
       {say_ending, say_which_program, say_budget, say_plan_state, say_plan_in_force, say_messages, say_looked_ahead,
        say_examined, say_divergences, say_safety, say_steady_state, say_prediction, say_other_times, say_link,
        say_bounds, say_opaque, say_unmanaged, say_trace_state, say_bare_frames}) {
    rule(inputs, say);
  }
  return say.take();
}

}  // namespace reprise::report

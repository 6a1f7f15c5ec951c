// What happened, in plain sentences: each rule looks at the inputs and says its sentence, or nothing.
#include <fmt/core.h>

#include <algorithm>

#include "tools/commands/sizes.h"
#include "tools/report/report.h"
#include "tools/report/timeline.h"

namespace reprise::report {
namespace {

using tools::format_bytes;
using tools::format_duration;

class Sentences {
 public:
  void good(const std::string& text) { add("good", text); }
  void note(const std::string& text) { add("note", text); }
  void bad(const std::string& text) { add("bad", text); }
  Json take() { return std::move(list_); }

 private:
  void add(const char* tone, const std::string& text) { list_.push_back({{"tone", tone}, {"text", text}}); }
  Json list_ = Json::array();
};

std::string plural(uint64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Template arguments of a kernel can fill a page; the tables have the whole name.
std::string short_name(const std::string& name) {
  const std::string plain = demangle(name);
  return plain.size() > 60 ? plain.substr(0, 57) + "..." : plain;
}

void say_ending(const Inputs& inputs, Sentences& say) {
  if (!inputs.ending.empty()) {
    say.bad(fmt::format("The program ended with {}. The report covers what happened until then.", inputs.ending));
  }
  if (inputs.log != nullptr && !inputs.log->ended) {
    say.bad("The run log has no end: the program was killed or crashed before Reprise could write its summary.");
  }
}

void say_budget(const Inputs& inputs, Sentences& say) {
  const Facts facts = collect_facts(inputs);
  if (facts.peak_actual == 0 || facts.budget == 0) return;
  if (facts.peak_actual <= facts.budget) {
    say.good(fmt::format("Device memory never exceeded the budget of {}; the peak was {}.", format_bytes(facts.budget),
                         format_bytes(facts.peak_actual)));
  } else {
    say.bad(fmt::format(
        "Device memory reached {}, which is above the budget of {}. This should never happen: please report it.",
        format_bytes(facts.peak_actual), format_bytes(facts.budget)));
  }
}

void say_plan_state(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr) {
    if (inputs.plan == nullptr) say.note("This is a recording only. Make a plan to see what a budget would cost.");
    if (inputs.plan != nullptr) say.note("There is no run log: times and memory of the plan are predictions.");
    return;
  }
  const RunLog& log = *inputs.log;
  if (log.iterations_planned > 0) return;
  if (log.plan_count == 0 && inputs.plan == nullptr) {
    say.note(
        "No plan was in force during this run, so tensors were moved on demand all the time. A program that ends "
        "after a few iterations, or that never repeats itself, looks like this.");
  } else if (log.activation_count == 0) {
    say.note("A plan was ready, but no iteration began that matched it before the program ended.");
  } else {
    say.note("The plan was started, but no iteration ran through under it.");
  }
}

std::string first_divergence(const RunDivergence& first) {
  if (first.expected.empty() && first.got.empty()) {
    return fmt::format(" (first in iteration {}: {})", first.iteration, first.reason);
  }
  return fmt::format(" (first in iteration {}, call {}: expected {}, got {})", first.iteration, first.call,
                     short_name(first.expected), short_name(first.got));
}

// After its last iteration every program goes on with something else.
bool only_left_its_loop(const RunLog& log) {
  if (log.divergence_count != 1 || log.divergences.size() != 1 || log.iterations.empty()) return false;
  return log.divergences.front().iteration > log.iterations.back().index;
}

void say_divergences(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->divergence_count == 0) return;
  const RunLog& log = *inputs.log;
  if (only_left_its_loop(log)) {
    say.note("Every iteration of the planned loop ran by the plan; what the program did after its loop ran on demand.");
    return;
  }
  std::string text = fmt::format("{} the program did something else than in the recorded iteration",
                                 log.divergence_count == 1 ? "Once," : fmt::format("{} times,", log.divergence_count));
  if (!log.divergences.empty()) text += first_divergence(log.divergences.front());
  say.note(text +
           ". Evaluation phases and last, smaller batches look like this. The rest of such an iteration ran on "
           "demand: slower, with the same results.");
}

void say_steady_state(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.log->iterations_planned == 0) return;
  uint64_t vmm = 0;
  uint64_t stall = 0;
  uint64_t wall = 0;
  for (const RunIteration& it : inputs.log->iterations) {
    if (!it.planned) continue;
    vmm += it.vmm_calls;
    stall += it.stall_ns;
    wall += it.wall_ns;
  }
  if (vmm == 0) say.good("Planned iterations made no memory-mapping call at all: tensors only moved by plain copies.");
  if (vmm > 0)
    say.note(fmt::format("Planned iterations made {}; each costs driver time.", plural(vmm, "memory-mapping call")));
  if (wall > 0 && stall > 0) {
    say.note(fmt::format("Computing waited for transfers during {:.1f} % of the planned iterations' time.",
                         100 * static_cast<double>(stall) / static_cast<double>(wall)));
  }
}

void say_prediction(const Inputs& inputs, Sentences& say) {
  const Facts facts = collect_facts(inputs);
  if (facts.actual_ns == 0 || facts.predicted_ns == 0) return;
  const double error = 100 * (static_cast<double>(facts.actual_ns) / static_cast<double>(facts.predicted_ns) - 1);
  say.note(fmt::format("An iteration took {}; the plan had predicted {} ({:+.0f} %).", format_duration(facts.actual_ns),
                       format_duration(facts.predicted_ns), error));
}

void say_trace_state(const Inputs& inputs, Sentences& say) {
  if (inputs.trace == nullptr) return;
  if (!inputs.trace->tail.ok()) say.bad(fmt::format("The trace is not whole: {}.", inputs.trace->tail.message()));
  if (inputs.trace->dropped > 0) {
    say.bad(fmt::format("{} were lost while recording, because the disk was too slow.",
                        plural(inputs.trace->dropped, "record")));
  }
  if (inputs.trace->unknown > 0) {
    say.note(fmt::format("{} of a newer kind in the trace were skipped.", plural(inputs.trace->unknown, "record")));
  }
  if (inputs.trace->activities.empty()) {
    say.note("The trace has no device times: the recorded timeline shows when calls were made, not when they ran.");
  }
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

void say_messages(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr) return;
  for (const std::string& message : inputs.log->messages) say.note(message);
}

}  // namespace

Json sentences_section(const Inputs& inputs) {
  Sentences say;
  for (const auto rule : {say_ending, say_budget, say_plan_state, say_messages, say_divergences, say_steady_state,
                          say_prediction, say_opaque, say_trace_state}) {
    rule(inputs, say);
  }
  return say.take();
}

}  // namespace reprise::report

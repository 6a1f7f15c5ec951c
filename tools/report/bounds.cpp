// The run against what no plan can beat. A bound is only worth a percentage when it is made of the kernel times of the
// same iteration; else kernels that ran faster or slower than when they were recorded are in the ratio, and that is
// said.
#include <fmt/core.h>

#include "preload/base/readable.h"
#include "tools/cli/sizes.h"
#include "tools/report/log/measured.h"
#include "tools/report/sentences.h"

namespace reprise::report {
namespace {

using tools::format_duration;

// `least_ns` at the same kernel times as the iteration's: no more than it took. "" where that does not hold.
std::string percent_of(uint64_t least_ns, uint64_t time_ns) {
  if (least_ns == 0 || time_ns < least_ns) return "";
  return decimal(100 * static_cast<double>(least_ns), static_cast<double>(time_ns), 1) + " %";
}

// Two figures of computing alone stand on the page then: which is which, and why they differ.
void say_own_times(const Inputs& inputs, const Facts& facts, Sentences& say) {
  const double times = share(facts.run_compute_ns, facts.compute_ns);
  std::string text = fmt::format(
      "Computing alone, which is the program's kernels and its own copies, took {} in iteration {} of this run, {} "
      "times what it took when recorded ({}). ",
      format_duration(facts.run_compute_ns), facts.run_iteration, decimal(times, 1, 2),
      format_duration(facts.compute_ns));
  if (times > 1 + kAlike || times < 1 - kAlike) {
    text += fmt::format(
        "No plan makes kernels {0}: the device, or the computer that simulates it, had {1} other work "
        "when that was measured, or {2} clocks. ",
        times > 1 ? "slower" : "faster", times > 1 ? "more" : "less", times > 1 ? "lower" : "higher");
  }
  const char* const what = inputs.curve.policy.empty() ? "of the plan is" : "of the plan and of other budgets is";
  say.note(text + fmt::format("What this page predicts {} {}.", what, with_whose_times(inputs)));
}

}  // namespace

std::string predicted_speed(uint64_t least_ns, uint64_t time_ns) { return percent_of(least_ns, time_ns); }

std::string measured_speed(const Facts& facts, uint64_t least_of_run_ns) {
  return facts.run_compute_ns == 0 ? "" : percent_of(least_of_run_ns, facts.run_wall_ns);
}

void say_bounds(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.plan == nullptr) return;
  const Facts facts = collect_facts(inputs);
  if (facts.actual_ns == 0 || facts.compute_ns == 0) return;
  if (facts.run_compute_ns > 0) return say_own_times(inputs, facts, say);
  const bool bounded = facts.bound_ns > 0 && !is_recording_of_another_link(inputs);
  const uint64_t least = bounded ? facts.bound_ns : facts.compute_ns;
  say.note(fmt::format(
      "An iteration took {} times what {} comes to ({}) with kernel times as recorded. This run "
      "measured none of its own, so kernels that ran faster or slower than in the recording are in "
      "that ratio, too.",
      decimal(share(facts.actual_ns, least), 1, 2),
      bounded ? "the bound, which no plan for this budget beats," : "computing alone", format_duration(least)));
}

}  // namespace reprise::report

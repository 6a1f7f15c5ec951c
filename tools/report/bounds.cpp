// The run against what no plan can beat. A bound is only worth a percentage when it is made of the kernel times of the
// same run; else kernels that ran faster or slower than when they were recorded are in the ratio, and that is said.
#include <fmt/core.h>

#include "tools/cli/sizes.h"
#include "tools/report/sentences.h"

namespace reprise::report {
namespace {

using tools::format_duration;

constexpr double kAlike = 0.03;  // kernels differ by as much from one iteration to the next

double ratio(uint64_t a, uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); }

// `least_ns` at the same kernel times as the iteration's: no more than it took. "" where that does not hold.
std::string percent_of(uint64_t least_ns, uint64_t time_ns) {
  if (least_ns == 0 || time_ns < least_ns) return "";
  return fmt::format("{:.1f} %", 100 * ratio(least_ns, time_ns));
}

// Two figures of computing alone stand on the page then: which is which, and why they differ.
void say_own_times(const Inputs& inputs, const Facts& facts, Sentences& say) {
  const double times = ratio(facts.run_compute_ns, facts.compute_ns);
  std::string text = fmt::format(
      "The program's kernels took {} in iteration {} of this run, {:.2f} times what they took "
      "when recorded ({}). ",
      format_duration(facts.run_compute_ns), facts.run_iteration, times, format_duration(facts.compute_ns));
  if (times > 1 + kAlike || times < 1 - kAlike) {
    text += fmt::format(
        "No plan makes kernels {0}: the device, or the computer that simulates it, had {1} other work "
        "when that was measured, or {2} clocks. ",
        times > 1 ? "slower" : "faster", times > 1 ? "more" : "less", times > 1 ? "lower" : "higher");
  }
  say.note(text +
           fmt::format("What this page predicts, of the plan and of other budgets, is {}.", with_whose_times(inputs)));
}

}  // namespace

std::string predicted_speed(uint64_t least_ns, uint64_t time_ns) { return percent_of(least_ns, time_ns); }

std::string measured_speed(const Facts& facts, uint64_t least_of_run_ns) {
  return facts.run_compute_ns == 0 ? "" : percent_of(least_of_run_ns, facts.actual_ns);
}

void say_bounds(const Inputs& inputs, Sentences& say) {
  if (inputs.log == nullptr || inputs.plan == nullptr) return;
  const Facts facts = collect_facts(inputs);
  if (facts.actual_ns == 0 || facts.compute_ns == 0) return;
  const bool own = facts.run_compute_ns > 0;
  const bool bounded = facts.bound_ns > 0 && (!own || facts.run_bound_ns > 0);
  const uint64_t least =
      own ? (bounded ? facts.run_bound_ns : facts.run_compute_ns) : (bounded ? facts.bound_ns : facts.compute_ns);
  const std::string what = bounded ? "the bound, which no plan for this budget beats," : "computing alone";
  const std::string ratio_text = fmt::format("An iteration took {:.2f} times what {} comes to ({})",
                                             ratio(facts.actual_ns, least), what, format_duration(least));
  if (!own) {
    say.note(ratio_text +
             " with kernel times as recorded. This run measured none of its own, so kernels that ran faster "
             "or slower than in the recording are in that ratio, too.");
  } else if (facts.actual_ns < least) {
    say.note(
        fmt::format("{} with the kernel times of iteration {}: kernels took longer there than in most iterations, "
                    "so the two are not compared.",
                    ratio_text, facts.run_iteration));
  }
  if (own) say_own_times(inputs, facts, say);
}

}  // namespace reprise::report

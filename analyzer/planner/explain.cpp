// The plan in a few lines for people.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "analyzer/planner/planner.h"

namespace reprise::analyzer {
namespace {

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

std::string explain(const plan::Plan& plan, const PlanSummary& summary) {
  std::string text;
  const auto out = std::back_inserter(text);
  const Iteration& iteration = summary.iteration;
  fmt::format_to(out, "iteration   {} calls, {} ops, {} tensors; seen {} times{}, covers {}\n", iteration.call_count,
                 summary.op_count, summary.tensor_count, iteration.occurrences,
                 iteration.marked ? " between marks" : "", covered(iteration));
  fmt::format_to(out, "memory      peak {:.1f} MiB, budget {:.1f} MiB, smallest possible {:.1f} MiB\n",
                 mib(plan.peak_bytes), mib(plan.budget_bytes), mib(plan.minimum_bytes));
  fmt::format_to(out, "plan        {}, {} chunks of {:.0f} KiB, {} vertices; best of {}, verified\n", plan.policy,
                 plan.chunk_count, static_cast<double>(plan.chunk_bytes) / 1024, plan.vertices.size(),
                 summary.candidates);
  fmt::format_to(out,
                 "transfers   {:.1f} MiB out, {:.1f} MiB in per iteration (at least {:.1f} and {:.1f}), {} remaps\n",
                 mib(plan.offload_bytes), mib(plan.reload_bytes), mib(summary.bounds.offload_bytes),
                 mib(summary.bounds.reload_bytes), plan.remap_count);
  fmt::format_to(out, "predicted   {:.3f} ms per iteration; compute alone {:.3f} ms, no plan below {:.3f} ms ({})\n",
                 ms(plan.predicted_ns), ms(plan.compute_ns), ms(summary.bounds.iteration_ns), summary.bounds.binding);
  if (summary.estimated_count > 0) {
    fmt::format_to(out, "note        {} of {} ops have no recorded duration; theirs is estimated from their bytes\n",
                   summary.estimated_count, summary.op_count);
  }
  return text;
}

}  // namespace reprise::analyzer

// The plan in a few lines for people.
#include <fmt/format.h>

#include <iterator>
#include <string>

#include "analyzer/planner/planner.h"
#include "preload/base/readable.h"

namespace reprise::analyzer {
namespace {

std::string ms(uint64_t ns) { return decimal(static_cast<double>(ns), 1e6, 3); }

}  // namespace

std::string explain(const plan::Plan& plan, const PlanSummary& summary) {
  std::string text;
  const auto out = std::back_inserter(text);
  const Iteration& iteration = summary.iteration;
  fmt::format_to(out, "iteration   {} calls, {} ops, {} tensors; seen {} times{}, covers {}\n", iteration.call_count,
                 summary.op_count, summary.tensor_count, iteration.occurrences,
                 iteration.marked ? " between marks" : "", covered(iteration));
  if (iteration.early) {
    fmt::format_to(
        out, "            it begins where more is alive than elsewhere in it: record it once more, and less moves\n");
  }
  fmt::format_to(out, "memory      peak {}, budget {}, smallest possible {}\n", readable_bytes(plan.peak_bytes),
                 readable_bytes(plan.budget_bytes), readable_bytes(plan.minimum_bytes));
  fmt::format_to(out, "plan        {}, {} chunks of {}, {} vertices; best of {}, verified\n", plan.policy,
                 plan.chunk_count, readable_bytes(plan.chunk_bytes), plan.vertices.size(), summary.candidates);
  fmt::format_to(out, "transfers   {} out, {} in per iteration (at least {} and {}), {} remaps\n",
                 readable_bytes(plan.offload_bytes), readable_bytes(plan.reload_bytes),
                 readable_bytes(summary.bounds.offload_bytes), readable_bytes(summary.bounds.reload_bytes),
                 plan.remap_count);
  fmt::format_to(out, "predicted   {} ms per iteration; compute alone {} ms, no plan below {} ms ({})\n",
                 ms(plan.predicted_ns), ms(plan.compute_ns), ms(summary.bounds.iteration_ns), summary.bounds.binding);
  if (summary.estimated_count > 0) {
    fmt::format_to(out,
                   "note        {} of {} ops have no recorded duration; theirs is that of the same op elsewhere, or "
                   "estimated from their bytes\n",
                   summary.estimated_count, summary.op_count);
  }
  return text;
}

}  // namespace reprise::analyzer

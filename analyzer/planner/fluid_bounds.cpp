#include "analyzer/planner/fluid_bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "preload/base/readable.h"

namespace reprise::analyzer {
namespace {

// A program that takes too long is tried once more with half the segments: a lower bound, too, if not as close.
uint64_t solve(const Workload& workload, uint64_t capacity, FluidOptions options,
               const std::vector<RecomputeCandidate>& candidates, std::string& trouble) {
  for (const uint32_t part : {1u, 2u}) {
    options.segments /= part;
    const Result<Fluid> fluid = solve_fluid(workload.graph, capacity, workload.machine, options, candidates);
    if (fluid.ok()) return fluid.value().iteration_ns;
    trouble = fluid.status().message();
    if (fluid.status().code() != StatusCode::unsupported) break;
  }
  return 0;
}

}  // namespace

bool has_fluid_bound(const Workload& workload) { return workload.graph.devices == 1; }

bool has_joint_bound(const Workload& workload, bool recompute) {
  return recompute && has_fluid_bound(workload) && !recompute_candidates(workload.graph).empty();
}

FluidBounds fluid_bounds(const Workload& workload, uint64_t budget_bytes, bool recompute, const FluidOptions& options) {
  FluidBounds bounds;
  if (!has_fluid_bound(workload)) {
    bounds.trouble = "there is no fluid bound for several devices";
    return bounds;
  }
  const uint64_t chunk = workload.graph.chunk_bytes;
  const uint64_t capacity = (budget_bytes - workload.reserved_bytes) / chunk * chunk;
  bounds.offload_ns = solve(workload, capacity, options, {}, bounds.trouble);
  if (!recompute || bounds.offload_ns == 0) return bounds;
  const std::vector<RecomputeCandidate> candidates = recompute_candidates(workload.graph);
  if (!candidates.empty()) bounds.joint_ns = solve(workload, capacity, options, candidates, bounds.trouble);
  return bounds;
}

std::string explain(const plan::Plan& plan, const FluidBounds& bounds) {
  if (bounds.offload_ns == 0) return fmt::format("fluid       not known: {}\n", bounds.trouble);
  const auto ms = [](uint64_t ns) { return decimal(static_cast<double>(ns), 1e6, 3); };
  const auto percent = [&](uint64_t ns) {
    return decimal(100 * static_cast<double>(ns), static_cast<double>(std::max<uint64_t>(plan.predicted_ns, 1)), 1);
  };
  std::string text = fmt::format("fluid       kernels in this order: not below {} ms ({} % of the prediction)",
                                 ms(bounds.offload_ns), percent(bounds.offload_ns));
  if (bounds.joint_ns != 0) {
    text += fmt::format("; with recompute {} ms ({} %)", ms(bounds.joint_ns), percent(bounds.joint_ns));
  }
  return text + "\n";
}

}  // namespace reprise::analyzer

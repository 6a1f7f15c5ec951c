#include "analyzer/planner/candidate.h"

#include <utility>

namespace reprise::analyzer {

namespace {

Schedule schedule_of(const TaskGraph& tasks, const std::vector<DeviceSubgraph>& subgraphs, const Machine& machine,
                     const Recipe& recipe) {
  const Policy& policy = *recipe.policy;
  if (subgraphs.empty()) return policy.schedule({tasks, machine, recipe.capacity, recipe.carry_visitors});
  std::vector<Schedule> schedules;
  schedules.reserve(subgraphs.size());
  for (const DeviceSubgraph& subgraph : subgraphs) {
    schedules.push_back(policy.schedule({subgraph.graph, machine, recipe.capacity, recipe.carry_visitors}));
  }
  return merge_schedules(tasks, subgraphs, schedules);
}

}  // namespace

Scheduled schedule_for(const TaskGraph& tasks, const std::vector<DeviceSubgraph>& subgraphs, const Machine& machine,
                       const Recipe& recipe) {
  Scheduled result;
  result.schedule = schedule_of(tasks, subgraphs, machine, recipe);
  result.tiers = assign_tiers(tasks, machine, result.schedule);
  return result;
}

std::optional<PlanCandidate> make_candidate(const TaskGraph& tasks, const std::vector<DeviceSubgraph>& subgraphs,
                                            const Machine& machine, const Recipe& recipe) {
  return make_candidate(tasks, machine, recipe, schedule_for(tasks, subgraphs, machine, recipe));
}

std::optional<PlanCandidate> make_candidate(const TaskGraph& tasks, const Machine& machine, const Recipe& recipe,
                                            Scheduled scheduled) {
  PlanCandidate candidate;
  candidate.recipe = recipe;
  candidate.policy = recipe.policy->name();
  candidate.schedule = std::move(scheduled.schedule);
  candidate.tiers = scheduled.tiers;
  if (!candidate.tiers.fits) return candidate;
  std::optional<Layout> layout = place_devices(tasks, candidate.schedule, static_cast<uint32_t>(recipe.chunks),
                                               recipe.mode, recipe.order, recipe.start_ns);
  if (!layout) return std::nullopt;
  candidate.layout = std::move(*layout);
  candidate.graph = build_mem_graph(tasks, candidate.schedule, candidate.layout);
  candidate.prediction = simulate(tasks, candidate.graph, machine, {});
  // Where each transfer maps, it is as well mapped elsewhere.
  if (!tasks.transfers_map) candidate.remaps_ns = machine.remap_ns_per_chunk * candidate.layout.remapped_chunks;
  return candidate;
}

bool is_better(const PlanCandidate& a, const PlanCandidate& b) {
  const auto rank = [](const PlanCandidate& c) {
    return std::pair(c.prediction.iteration_ns + c.remaps_ns, c.schedule.offload_bytes + c.schedule.reload_bytes);
  };
  return rank(a) < rank(b);
}

}  // namespace reprise::analyzer

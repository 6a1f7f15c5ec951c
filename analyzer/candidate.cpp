#include "analyzer/candidate.h"

#include <tuple>

namespace reprise::analyzer {

namespace {

Schedule schedule_of(const TaskGraph& tasks, const std::vector<DeviceView>& views, const Machine& machine,
                     const Recipe& recipe) {
  const Policy& policy = *recipe.policy;
  if (views.empty()) return policy.schedule({tasks, machine, recipe.capacity, recipe.carry_visitors});
  std::vector<Schedule> schedules;
  schedules.reserve(views.size());
  for (const DeviceView& view : views) {
    schedules.push_back(policy.schedule({view.graph, machine, recipe.capacity, recipe.carry_visitors}));
  }
  return merge_schedules(tasks, views, schedules);
}

}  // namespace

std::optional<Candidate> make_candidate(const TaskGraph& tasks, const std::vector<DeviceView>& views,
                                        const Machine& machine, const Recipe& recipe) {
  Candidate candidate;
  candidate.policy = recipe.policy->name();
  candidate.schedule = schedule_of(tasks, views, machine, recipe);
  candidate.tiers = assign_tiers(tasks, machine, candidate.schedule);
  if (!candidate.tiers.fits) return candidate;
  std::optional<Layout> layout =
      place_devices(tasks, candidate.schedule, static_cast<uint32_t>(recipe.chunks), recipe.mode, recipe.order);
  if (!layout) return std::nullopt;
  candidate.layout = std::move(*layout);
  candidate.graph = build_mem_graph(tasks, candidate.schedule, candidate.layout);
  candidate.prediction = simulate(tasks, candidate.graph, machine, {});
  return candidate;
}

bool is_better(const Candidate& a, const Candidate& b, const Machine& machine) {
  const auto rank = [&](const Candidate& c) {
    return std::tuple(c.layout.remap_count > 0 && machine.remap_ns_per_chunk > 0, c.prediction.iteration_ns,
                      c.schedule.offload_bytes + c.schedule.reload_bytes);
  };
  return rank(a) < rank(b);
}

}  // namespace reprise::analyzer

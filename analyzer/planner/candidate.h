// One way to run an iteration in a budget: schedule, layout, MemGraph and prediction. Used by the planner.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/memgraph/build.h"
#include "analyzer/placement/layout.h"
#include "analyzer/policies/policy.h"
#include "analyzer/rewrite/device_subgraphs.h"
#include "analyzer/schedule/tiers.h"
#include "analyzer/simulate/simulate.h"

namespace reprise::analyzer {

// How a candidate is made: the policy plans for `capacity` chunks, placement may use `chunks` of them and more.
struct Recipe {
  const Policy* policy = nullptr;
  uint64_t capacity = 0;
  uint64_t chunks = 0;
  PlacementMode mode = PlacementMode::homes;
  HomeOrder order = HomeOrder::longest_first;
  bool carry_visitors = true;
  std::vector<uint64_t> start_ns = {};  // of each call, for the placement; empty: as recorded
};

struct PlanCandidate {
  Recipe recipe;
  std::string policy;  // its name
  Schedule schedule;
  TierUse tiers;
  Layout layout;
  MemGraph graph;
  Prediction prediction;   // in which remaps take what they were measured to take alone
  uint64_t remaps_ns = 0;  // all of them, once more
};

// What the policy plans, with the tiers: the part of a candidate that is the same for every placement.
struct Scheduled {
  Schedule schedule;
  TierUse tiers;
};
Scheduled schedule_for(const TaskGraph& tasks, const std::vector<DeviceSubgraph>& subgraphs, const Machine& machine,
                       const Recipe& recipe);

// `subgraphs`: the graph's, by device. nullopt: the placement found no room. Where host and SSD are too small
// (tiers.fits), nothing behind the tiers is set.
std::optional<PlanCandidate> make_candidate(const TaskGraph& tasks, const std::vector<DeviceSubgraph>& subgraphs,
                                            const Machine& machine, const Recipe& recipe);
// `scheduled`: for this recipe, or one that differs in the placement only.
std::optional<PlanCandidate> make_candidate(const TaskGraph& tasks, const Machine& machine, const Recipe& recipe,
                                            Scheduled scheduled);

// Predicted time first, where remaps count twice: beside other work, mapping took twice what it takes alone (0037).
// Then bytes moved.
bool is_better(const PlanCandidate& a, const PlanCandidate& b);

}  // namespace reprise::analyzer

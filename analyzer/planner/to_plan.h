// A candidate as a plan: what the planner found, in the form that is written, verified and replayed. Called by the
// planner and by benchmarks that time its parts. And a plan with other kernel times, for reports.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"

namespace reprise::analyzer {

// The link that is planned for, as plans have it.
plan::PlannedLink link_of(const Machine& machine);

// Not verified yet. The candidate is used up: its edges and chunks, most of the memory, move into the plan.
plan::Plan to_plan(const Workload& workload, uint64_t budget, PlanCandidate candidate);

// Gives the workload these times of the plan's calls, and what follows from them. false: the plan is of other calls.
bool set_times(Workload& workload, const plan::Plan& plan, const std::vector<uint64_t>& ns);

// The plan with these times of its calls, and what it predicts then: simulated as when it was made, on the workload's
// machine. None where it would not have predicted the same there with the times that it was made with: it was made for
// another machine, or another loop.
std::optional<plan::Plan> retimed(const Workload& workload, const plan::Plan& plan, const std::vector<uint64_t>& ns);

}  // namespace reprise::analyzer

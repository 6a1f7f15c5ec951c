// A candidate as a plan: what the planner found, in the form that is written, verified and replayed. Called by the
// planner and by benchmarks that time its parts.
#pragma once
#include <cstdint>

#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"

namespace reprise::analyzer {

// Not verified yet. The candidate is used up: its edges and chunks, most of the memory, move into the plan.
plan::Plan to_plan(const Workload& workload, uint64_t budget, PlanCandidate candidate);

}  // namespace reprise::analyzer

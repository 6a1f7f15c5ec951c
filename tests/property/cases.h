// Random plans for properties. Call inside a RapidCheck property.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/planner.h"

namespace reprise::analyzer::testing {

// A random program's workload.
Workload any_workload();
// Enough for everything at once.
uint64_t bytes_for_everything(const Workload& workload);
// A feasible one, often tight.
uint64_t any_budget(const Workload& workload);
// "auto" and every policy there is.
std::vector<std::string> policy_names();
// This budget and any policy.
PlanOptions options_for(uint64_t budget);

// A random program, planned for a feasible budget, often a tight one.
struct Case {
  Workload workload;
  plan::Plan plan;
};
// With `overtake` the plan may be one that is for simulation alone.
Case any_case(bool overtake = false);

}  // namespace reprise::analyzer::testing

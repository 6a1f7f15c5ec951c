// Random plans for properties. Callers: the tests of plans and of the verifier, inside a RapidCheck property.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/planner/planner.h"

namespace reprise::analyzer::testing {

// A random program's workload, of every second one with facts.
Workload any_workload();
// As if facts were known of some of its kernels.
Workload workload_with_facts(const Workload& workload);
// Of another form of its graph.
Workload workload_of_graph(const Workload& workload, TaskGraph graph);
// Enough to keep all tensors on the device.
uint64_t bytes_for_everything(const Workload& workload);
// A feasible budget, often a tight one.
uint64_t any_budget(const Workload& workload);
// "auto" and every policy there is.
std::vector<std::string> policy_names();
// This budget and any policy.
PlanOptions options_for(uint64_t budget);

// A random program, planned for a feasible budget, often a tight one.
struct Case {
  Workload workload;
  plan::Plan plan;
  Bounds bounds;  // that hold for the plan
};
// Rewrites to try besides; with either, a plan may be for simulation alone.
struct CaseOptions {
  bool reorder = false;
  bool split_tensors = false;
};
Case any_case(const CaseOptions& wishes = {});

}  // namespace reprise::analyzer::testing

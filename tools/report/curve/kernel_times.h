// One page has one set of kernel times: where a run measured its own, all that is predicted is of those, of its plan,
// of other budgets and the bounds, else of what the plan was made with, which a longer recording may have others of.
// Called where a report's inputs are examined.
#pragma once
#include <optional>
#include <string>

#include "analyzer/planner/planner.h"
#include "tools/report/log/run_log.h"

namespace reprise::report {

struct KernelTimes {
  analyzer::Workload recorded;  // with the plan's times, else those of the trace
  analyzer::Workload own;       // with those of an iteration of the run, where there are any
  bool has_own = false;
  std::optional<plan::Plan> plan;  // the plan with those times; where they are none, or its machine is not known, none
};

// Plan and log may be absent. A plan of another loop than the workload's says nothing about it.
KernelTimes kernel_times(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log);
// Whose the own ones are, for people: "of iteration 5 of this run", and how far that one is from most.
std::string whose_times(const RunLog& log);

}  // namespace reprise::report

// Which of a program's loops the figures of other budgets are of. Called where a report's inputs are examined.
#pragma once
#include <string>

#include "analyzer/planner/planner.h"
#include "tools/report/log/run_log.h"

namespace reprise::report {

// The loop that the plan is of, where the recording has it; else the one that covers most of what was recorded. A
// program that evaluates now and then has recorded little of its training once that has a plan.
Result<analyzer::Workload> workload_of(analyzer::Planning& planning, const plan::Plan* plan);

// Is this loop the one of the run's first plan? Plan and log may be absent.
bool is_of_plan(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log);

// How much of the run it is: what plans ruled, by the log, and as much of the rest as the recording tells if it is this
// run's own; else of the time since a plan came in force, in which the rest counts as something else. Iterations that
// the program left in their middle are of it as far as they got.
double share_of_run(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log, bool own_recording);
// In words, "about 86 % of the run's time", or, where nothing was planned, as of the recording.
std::string covers_of_run(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log,
                          bool own_recording);

// Is it nearly all that the program does? Then a budget for it is one for the program; what else there is may need more
// than the loop does.
bool is_nearly_all(const analyzer::Workload& workload, const plan::Plan* plan, const RunLog* log, bool own_recording);

}  // namespace reprise::report

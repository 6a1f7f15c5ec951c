// Two runs, or two plans, side by side: what changed, in one sentence, a table, and a chart of the runs' iterations or
// a table of what moves differently. Called by `report`.
#pragma once
#include <string>

#include "tools/report/report.h"

namespace reprise::report {

struct ComparedRun {
  std::string name;  // its file
  const RunLog* log = nullptr;
};

struct ComparedPlan {
  std::string name;
  const plan::Plan* plan = nullptr;
  uint64_t bound_ns = 0;  // 0: not known
};

Json compare_data(const ComparedRun& before, const ComparedRun& after);
// Of one iteration, as check_same_plans() says. The trace, for who allocated what; nullptr: not given.
Json compare_data(const ComparedPlan& before, const ComparedPlan& after, const trace::Trace* trace);
// One line for the terminal.
std::string compare_summary(const Json& data);

}  // namespace reprise::report

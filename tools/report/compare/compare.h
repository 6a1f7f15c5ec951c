// Two runs side by side: what changed, in one sentence, a table and a chart of their iterations. Called by `report`.
#pragma once
#include <string>

#include "tools/report/report.h"

namespace reprise::report {

struct ComparedRun {
  std::string name;  // its file
  const RunLog* log = nullptr;
};

Json compare_data(const ComparedRun& before, const ComparedRun& after);
// One line for the terminal.
std::string compare_summary(const Json& data);

}  // namespace reprise::report

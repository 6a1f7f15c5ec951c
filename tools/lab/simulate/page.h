// What `reprise simulate` found, as one HTML page that loads nothing: curves over budgets, and a table. Caller:
// commands/simulate.cpp; the page's parts are those of the report (tools/report/page/).
#pragma once
#include <string>
#include <vector>

#include "tools/lab/simulate/table.h"

namespace reprise::tools {

// `assumed_link`: as report::assumed_link(); empty where nothing is assumed.
std::string to_page(const std::vector<SimulatedRow>& rows, const std::string& program, const std::string& machine,
                    const std::string& assumed_link);

}  // namespace reprise::tools

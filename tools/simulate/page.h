// What `reprise simulate` found, as one HTML page that loads nothing: curves over budgets, and a table. Caller:
// commands/simulate.cpp; the page's parts are those of the report (tools/report/page/).
#pragma once
#include <string>
#include <vector>

#include "tools/simulate/table.h"

namespace reprise::tools {

std::string to_page(const std::vector<SimulatedRow>& rows, const std::string& program, const std::string& machine);

}  // namespace reprise::tools

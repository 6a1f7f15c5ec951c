// Which of the simulated budgets to take. Called by commands/simulate.cpp, behind the table.
#pragma once
#include <string>
#include <vector>

#include "tools/simulate/table.h"

namespace reprise::tools {

// One line; empty where there is nothing to choose from: fewer than two budgets.
std::string recommend(const std::vector<SimulatedRow>& rows);

}  // namespace reprise::tools

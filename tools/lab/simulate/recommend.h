// Which of the simulated budgets to take. Called by commands/simulate.cpp, behind the table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/lab/simulate/table.h"

namespace reprise::tools {

// One line; empty where there is nothing to choose from: fewer than two budgets. `slowdown`: how much longer than
// computing alone an iteration may take, as a share; without it, about as long as the fastest.
std::string recommend(const std::vector<SimulatedRow>& rows, std::optional<double> slowdown = {});
bool is_within(const SimulatedRow& row, double slowdown);

}  // namespace reprise::tools

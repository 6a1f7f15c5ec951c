// The options of `reprise simulate` that disturb what the planner reckons with: noise on transfers, fixed orders of
// dispatch. Caller: commands/simulate.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/simulate/simulate.h"
#include "preload/trace/status.h"

namespace CLI {
class App;
}

namespace reprise::tools {

struct DisturbanceArguments {
  std::string noise;   // "20%"
  std::string regime;  // "20ms"
  std::string dispatch = "free";
  uint64_t seed = 1;
  uint32_t seeds = 8;
};

void declare_disturbance(CLI::App& app, DisturbanceArguments& arguments);

// One simulation for each seed; none when nothing is asked for that the plan's own prediction does not have. Errors
// name the option.
Result<std::vector<analyzer::SimulationOptions>> trials_of(const DisturbanceArguments& arguments);

}  // namespace reprise::tools

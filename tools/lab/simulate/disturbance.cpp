#include "tools/lab/simulate/disturbance.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace reprise::tools {
namespace {

using analyzer::Dispatch;

constexpr double kMostNoise = 300;  // percent
constexpr uint32_t kMostSeeds = 10'000;

struct DispatchName {
  const char* name;
  Dispatch dispatch;
};
constexpr DispatchName kDispatches[] = {{"free", Dispatch::free},
                                        {"fixed", Dispatch::fixed_plan},
                                        {"fixed-kernels", Dispatch::fixed_kernels},
                                        {"fixed-best", Dispatch::fixed_best}};

Status refuse(const char* option, const std::string& text, const char* why) {
  return {StatusCode::invalid_argument, fmt::format("{} {}: {}", option, text, why)};
}

// A number and its unit. NaN: it is none.
double number_with(const std::string& text, const std::string& unit) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end != text.c_str() && end == text.c_str() + text.size() - unit.size() && text.ends_with(unit) ? value : NAN;
}

}  // namespace

void declare_disturbance(CLI::App& app, DisturbanceArguments& arguments) {
  app.add_option("--noise", arguments.noise, "Transfers vary by this, as in 20%; times are means over the seeds");
  app.add_option("--regime", arguments.regime,
                 "Links vary, not transfers: each keeps its speed for this long, as in 20ms");
  app.add_option("--seed", arguments.seed, "First seed of the noise (default: 1)");
  app.add_option("--seeds", arguments.seeds, "Number of seeds (default: 8)");
  app.add_option(
      "--dispatch", arguments.dispatch,
      "Order of execution: free (whatever is ready), fixed (the plan's), fixed-kernels (kernels as the program "
      "calls them, transfers free), fixed-best (that of free without noise)");
}

Result<std::vector<analyzer::SimulationOptions>> trials_of(const DisturbanceArguments& arguments) {
  analyzer::SimulationOptions trial;
  bool known = false;
  for (const DispatchName& row : kDispatches) {
    if (arguments.dispatch != row.name) continue;
    trial.dispatch = row.dispatch;
    known = true;
  }
  if (!known) {
    return refuse("--dispatch", arguments.dispatch, "no such order; choose free, fixed, fixed-kernels or fixed-best");
  }
  if (!arguments.noise.empty()) {
    const double percent = number_with(arguments.noise, "%");
    if (!(percent >= 0 && percent <= kMostNoise)) {
      return refuse("--noise", arguments.noise, "not a percentage from 0% to 300%; write for example 20%");
    }
    trial.noise.sigma = percent / 100;
  }
  if (!arguments.regime.empty()) {
    const double ms = number_with(arguments.regime, "ms");
    if (!(ms >= 0.001 && ms <= 3'600'000)) {
      return refuse("--regime", arguments.regime, "not a time of 0.001ms or more; write for example 20ms");
    }
    if (trial.noise.sigma == 0) return refuse("--regime", arguments.regime, "needs --noise, too");
    trial.noise.regime_ns = static_cast<uint64_t>(std::llround(ms * 1e6));
  }
  if (arguments.seeds < 1 || arguments.seeds > kMostSeeds) {
    return refuse("--seeds", std::to_string(arguments.seeds), "from 1 to 10000");
  }
  std::vector<analyzer::SimulationOptions> trials;
  if (trial.noise.sigma == 0) {
    if (trial.dispatch != Dispatch::free) trials.push_back(trial);  // every seed would give the same
    return trials;
  }
  for (uint32_t i = 0; i < arguments.seeds; ++i) {
    trial.noise.seed = arguments.seed + i;
    trials.push_back(trial);
  }
  return trials;
}

}  // namespace reprise::tools

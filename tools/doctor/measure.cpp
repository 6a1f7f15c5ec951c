#include "tools/doctor/measure.h"

#include <fmt/core.h>

#include <filesystem>

#include "tools/cli/files.h"
#include "tools/cli/outputs.h"
#include "tools/launch/launcher.h"

namespace reprise::tools {

Result<int> measure(const Measurement& what) {
  if (Status status = Outputs().writes("--measure", what.machine).check(); !status.ok()) return status;
  const Installation installed = installation();
  const std::string probe = (std::filesystem::path(installed.planner).parent_path() / "reprise-probe").string();
  if (!check_readable(probe).ok()) {
    return Status{StatusCode::not_found, fmt::format("{} is not installed, and it does the measuring", probe)};
  }
  Launch launch;
  launch.arguments = {probe, "--sections", what.sections, "--machine", absolute_path(what.machine)};
  if (what.seconds > 0) launch.arguments.insert(launch.arguments.end(), {"--seconds", fmt::format("{}", what.seconds)});
  if (what.simulated) launch.environment.emplace_back("LD_LIBRARY_PATH", installed.sim_folder);
  const Result<Outcome> outcome = tools::launch(launch);
  if (!outcome.ok()) return outcome.status();
  return outcome.value().signal != 0 ? 128 + outcome.value().signal : outcome.value().exit_code;
}

}  // namespace reprise::tools

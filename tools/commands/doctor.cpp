// `reprise doctor`: would Reprise work here, and if not, what is missing?
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/measure.h"

namespace reprise::tools {
namespace {

const char* finding_name(Finding finding) {
  switch (finding) {
    case Finding::good:
      return "good";
    case Finding::note:
      return "note";
    case Finding::missing:
      return "missing";
  }
  return "";
}

constexpr int kProbeSawNoDevice = 3;

int run_measurement(const Measurement& what) {
  const Result<int> exit_code = measure(what);
  if (!exit_code.ok()) return fail(exit_code.status());
  if (exit_code.value() == 0) {
    say(fmt::format("measured; next: reprise plan or simulate --machine {}", what.machine));
  }
  return exit_code.value() == kProbeSawNoDevice ? kExitFailure : exit_code.value();
}

int run_doctor(bool simulated, bool json) {
  std::vector<Check> checks;
  check_software(simulated, checks);
  check_device(simulated ? installation().sim_driver : "", checks);
  check_host(host_state(), checks);
  const Status written = write_file("-", json ? doctor_json(checks).dump(1) + "\n" : doctor_text(checks));
  return written.ok() ? doctor_exit_code(checks) : fail(written);
}

}  // namespace

int doctor_exit_code(const std::vector<Check>& checks) {
  const bool missing =
      std::any_of(checks.begin(), checks.end(), [](const Check& check) { return check.finding == Finding::missing; });
  return missing ? kExitFailure : 0;
}

nlohmann::ordered_json doctor_json(const std::vector<Check>& checks) {
  nlohmann::ordered_json json;
  json["ok"] = doctor_exit_code(checks) == 0;
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : checks) {
    json["checks"].push_back({{"name", check.name},
                              {"finding", finding_name(check.finding)},
                              {"value", check.value},
                              {"advice", check.advice}});
  }
  return json;
}

std::string doctor_text(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += fmt::format("{:<8} {:<24} {}\n", finding_name(check.finding), check.name, check.value);
    if (!check.advice.empty()) text += fmt::format("{:<8} {:<24} -> {}\n", "", "", check.advice);
  }
  std::string missing;
  for (const Check& check : checks) {
    if (check.finding == Finding::missing) missing += (missing.empty() ? "" : ", ") + check.name;
  }
  return text + (missing.empty() ? "Reprise can work here.\n"
                                 : fmt::format("Reprise cannot work here yet; missing: {}.\n", missing));
}

Action declare_doctor(CLI::App& app, const ProgramArguments&) {
  struct Options {
    std::string device = "gpu";
    bool json = false;
    Measurement measurement;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--device", options->device, "gpu, or sim: the simulated device")
      ->check(CLI::IsMember({"gpu", "sim"}));
  app.add_flag("--json", options->json, "Print the findings as JSON");
  auto* const measured =
      app.add_option("--measure", options->measurement.machine,
                     "Then measure links, memory calls and latencies, for minutes, and write this machine file")
          ->type_name("FILE");
  app.add_option("--sections", options->measurement.sections, "What to measure, as for reprise-probe")
      ->needs(measured)
      ->capture_default_str();
  app.add_option("--seconds", options->measurement.seconds, "Time for each section")
      ->needs(measured)
      ->check(CLI::Range(1.0, 3600.0));
  app.footer("Exit code: 0 when Reprise can work here, notes included; 1 when something that it needs is missing.");
  return [options] {
    options->measurement.simulated = options->device == "sim";
    const int exit_code = run_doctor(options->measurement.simulated, options->json);
    if (exit_code != 0 || options->measurement.machine.empty()) return exit_code;
    return run_measurement(options->measurement);
  };
}

}  // namespace reprise::tools

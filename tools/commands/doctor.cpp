// `reprise doctor`: would Reprise work here, and if not, what is missing?
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/colour.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/doctor/calls.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/measure.h"

namespace reprise::tools {
namespace {

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
  check_around(checks);
  const Status written =
      write_file("-", json ? doctor_json(checks).dump(1) + "\n" : doctor_text(checks, has_colours(STDOUT_FILENO)));
  return written.ok() ? doctor_exit_code(checks) : fail(written);
}

int run_calls(bool json) {
  const Status written = write_file("-", json ? calls_json().dump(1) + "\n" : calls_text());
  return written.ok() ? 0 : fail(written);
}

}  // namespace

Action declare_doctor(CLI::App& app, const ProgramArguments&) {
  struct Options {
    std::string device = "gpu";
    bool json = false;
    bool calls = false;
    Measurement measurement;
  };
  auto options = std::make_shared<Options>();
  app.add_option("--device", options->device, "gpu, or sim: the simulated device")
      ->check(CLI::IsMember({"gpu", "sim"}));
  app.add_flag("--json", options->json,
               "Print the findings as JSON; they hold paths and values of variables, as the text does");
  app.add_flag("--calls", options->calls, "Print what is known about each call of the driver, and nothing else");
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
  app.footer(
      "Exit code: 0 when Reprise can work here, notes included; 1 when something that it needs is missing.\nWhere "
      "something is wrong, report what --json prints and, if you can, the recording without its names: reprise export "
      "a.trace --redact --format reprise -o bug");
  return [options] {
    if (options->calls) return run_calls(options->json);
    options->measurement.simulated = options->device == "sim";
    const int exit_code = run_doctor(options->measurement.simulated, options->json);
    if (exit_code != 0 || options->measurement.machine.empty()) return exit_code;
    return run_measurement(options->measurement);
  };
}

}  // namespace reprise::tools

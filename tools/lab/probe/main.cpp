// reprise-probe: measures on this machine's GPU what Reprise's design assumes. Runs each section in a worker process,
// prints a table, writes one JSON document and the machine file.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <set>
#include <sstream>
#include <vector>

#include "tools/lab/probe/output/output.h"
#include "tools/lab/probe/output/section.h"
#include "tools/lab/probe/sections/single_checks.h"
#include "tools/lab/probe/subjects/elf_exports.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr int kExitNoDevice = 3;
constexpr double kStartSeconds = 20;  // a worker's own start (context, kernels) is not on the section's clock
constexpr double kGraceSeconds = 15;  // to end and release in: longer than a worker gives the programs that it runs

struct Arguments {
  Options options;
  std::string sections = "all";
  std::string json;
  std::string machine;
  bool quiet = false;
  bool exports = false;
  int worker = 0;
  std::string check;
};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Result<std::vector<const Section*>> chosen_sections(const std::string& text) {
  std::vector<const Section*> chosen;
  std::istringstream names(text);
  for (std::string name; std::getline(names, name, ',');) {
    const size_t before = chosen.size();
    for (const Section& section : kSections) {
      if (name == "all" || name == section.name || name == std::to_string(section.number)) chosen.push_back(&section);
    }
    if (chosen.size() == before)
      return Status(StatusCode::invalid_argument, fmt::format("no section is called '{}'", name));
  }
  if (chosen.empty()) return Status(StatusCode::invalid_argument, "no section chosen");
  return chosen;
}

// The driver's version as it reports itself, and the kernel module's where the system shows it.
std::string driver_version(const Driver& driver) {
  int version = 0;
  if (!driver.cuDriverGetVersion || driver.cuDriverGetVersion(&version) != CUDA_SUCCESS) return "unknown";
  std::string text = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  if (FILE* file = std::fopen("/sys/module/nvidia/version", "re")) {
    char module[64] = {};
    if (std::fscanf(file, "%63s", module) == 1) text += fmt::format(", module {}", module);
    std::fclose(file);
  }
  return driver.simulated ? "simulated, " + text : text;
}

std::string worker_line(const SectionReport& report, const Machine& machine) {
  // Names of libraries and files are not always UTF-8.
  return Json({{"section", report.to_json()}, {"machine", to_json(machine)}})
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

bool write_all(int output, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(output, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  return true;
}

// One section in this process; the results go to `output`, all that there are after each measurement, one JSON document
// a line: a driver that faults or never answers takes only what was not measured yet.
int run_worker(const Arguments& arguments, int output) {
  const Section& section = kSections.at(static_cast<size_t>(arguments.worker - 1));
  SectionReport report(section.number, section.name);
  Machine machine;
  const auto driver = open_driver();
  if (driver.ok()) {
    const auto device = Device::open(driver.value(), arguments.options.device);
    if (device.ok()) {
      machine.device = device.value().name();
      machine.driver = driver_version(driver.value());
      machine.memory_bytes = device.value().total_bytes();
      const Limit limit(arguments.options.seconds);
      const auto save = [&] {
        report.set_seconds(limit.seconds_used());
        write_all(output, worker_line(report, machine));
      };
      SectionContext context{driver.value(), device.value(), arguments.options, limit, report, machine, save};
      section.run(context);
      device.value().synchronize().ok();
      report.set_seconds(limit.seconds_used());
      if (interrupted()) report.set_partial();
    } else {
      report.note(device.status().message());
      report.set_state(device.status().code() == StatusCode::not_found ? SectionState::no_device
                                                                       : SectionState::failed);
    }
  } else {
    report.note(driver.status().message());
    report.set_state(SectionState::no_device);
  }
  return write_all(output, worker_line(report, machine)) ? 0 : kExitFailure;
}

// The last line of a worker that is whole: the one after it may be cut.
Json last_document(const std::string& output) {
  Json last;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    Json json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("section") && json.contains("machine")) last = std::move(json);
  }
  return last;
}

SectionReport run_section(const Section& section, const Arguments& arguments, Machine& machine) {
  const Options& options = arguments.options;
  const Command command{
      {own_path(), "--worker", std::to_string(section.number), "--seconds", fmt::format("{}", options.seconds),
       "--device", std::to_string(options.device), "--scratch", options.scratch, "--python", options.python},
      {},
      options.seconds + kStartSeconds,
      kGraceSeconds};
  const auto outcome = run_command(command);
  SectionReport failed(section.number, section.name);
  failed.set_state(SectionState::failed);
  if (!outcome.ok()) {
    failed.note(outcome.status().message());
    return failed;
  }
  const std::string ending =
      fmt::format("the worker ended with {}{}: {}", outcome.value().exit_code,
                  outcome.value().timed_out ? ", out of time" : "", last_line(outcome.value().error_output));
  const Json json = last_document(outcome.value().output);
  if (json.is_null()) {
    failed.note(ending);
    return failed;
  }
  if (const auto part = machine_from_json(json["machine"]); part.ok() && !part.value().device.empty()) {
    machine.device = part.value().device;
    machine.driver = part.value().driver;
    machine.memory_bytes = part.value().memory_bytes;
    merge(machine, part.value());
  }
  auto report = SectionReport::from_json(json["section"]);
  if (!report.ok()) {
    failed.note(report.status().message());
    return failed;
  }
  if (outcome.value().exit_code != 0) {
    report.value().note(ending + "; what it had measured until then is here");
    report.value().set_state(SectionState::failed);
  }
  return report.value();
}

Json document(const std::vector<SectionReport>& reports, const Machine& machine, const Driver* driver) {
  utsname system = {};
  uname(&system);
  Json json = {
      {"format", "reprise-probe"},
      {"version", kReportVersion},
      {"measured_at", machine.measured_at},
      {"device", machine.simulated        ? "simulated"
                 : machine.device.empty() ? "none"
                                          : machine.device},
      {"device_name", machine.device},
      {"driver", machine.driver},
      {"driver_file", driver ? driver->path : ""},
      {"cuda_headers", fmt::format("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10)},
      {"host",
       {{"kernel", system.release}, {"machine", system.machine}, {"processors", sysconf(_SC_NPROCESSORS_ONLN)}}}};
  json["sections"] = Json::array();
  for (const SectionReport& report : reports) json["sections"].push_back(report.to_json());
  json["machine"] = to_json(machine);
  return json;
}

int fail(const Status& status) {
  fmt::print(stderr, "reprise: {}\n", status.message());
  return status.code() == StatusCode::invalid_argument ? kExitUsage : kExitFailure;
}

// Writes all results after each section, so that a probe that is killed later loses none.
Status write_results(const Arguments& arguments, const std::vector<SectionReport>& reports, const Machine& machine,
                     const Driver* driver) {
  if (!arguments.json.empty()) {
    const std::string text =
        document(reports, machine, driver).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (Status status = write_text(arguments.json, text); !status.ok()) return status;
  }
  if (arguments.machine.empty() || machine.device.empty()) return Status::success();
  return write_machine(machine, arguments.machine);
}

int run_all(const Arguments& arguments) {
  const auto sections = chosen_sections(arguments.sections);
  if (!sections.ok()) return fail(sections.status());
  const auto driver = open_driver();
  const Driver* const opened = driver.ok() ? &driver.value() : nullptr;
  Machine machine;
  machine.measured_at = utc_now();
  machine.simulated = opened && opened->simulated;
  std::vector<SectionReport> reports;
  // A file that cannot be written is told before minutes of measuring, not behind them.
  Status written = write_results(arguments, reports, machine, opened);
  for (const Section* section : sections.value()) {
    if (interrupted() || !written.ok()) break;
    if (!arguments.quiet) fmt::print(stderr, "reprise: probe section {}, {}\n", section->number, section->name);
    reports.push_back(run_section(*section, arguments, machine));
    fmt::print("{}\n", reports.back().to_table());
    std::fflush(stdout);
    written = write_results(arguments, reports, machine, opened);
  }
  if (!written.ok()) return fail(written);
  const auto count = [&](SectionState state) {
    return std::count_if(reports.begin(), reports.end(), [&](const SectionReport& r) { return r.state() == state; });
  };
  if (!reports.empty() && count(SectionState::no_device) == static_cast<std::ptrdiff_t>(reports.size()))
    return kExitNoDevice;
  return count(SectionState::failed) > 0 || interrupted() ? kExitFailure : 0;
}

// The names that the driver's own library exports, one a line: compared with the shim's table by tools/lab/gpu-suite.
int print_exports() {
  const auto driver = open_driver();
  if (!driver.ok()) {
    fmt::print(stderr, "reprise: {}\n", driver.status().message());
    return kExitNoDevice;
  }
  const auto names = read_exports(driver.value().path);
  if (!names.ok()) return fail(names.status());
  for (const std::string& name : names.value()) fmt::print("{}\n", name);
  return 0;
}

int run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "Measures on this machine's GPU what Reprise's design assumes. Exit: 0 measured, 1 a section failed, 2 usage, 3 "
      "no device.");
  app.add_option("--sections", arguments.sections,
                 "comma separated: all, or numbers or names of 1 interception, 2 vmm, 3 aliasing, 4 link, 5 latency, 6 "
                 "parameters, 7 cupti, 8 purity");
  app.add_option("--json", arguments.json, "write all results to this file");
  app.add_option("--machine", arguments.machine, "write the machine file (for the planner) to this file");
  app.add_option("--seconds", arguments.options.seconds, "time for each section")->check(CLI::Range(1.0, 3600.0));
  app.add_option("--device", arguments.options.device, "ordinal of the device")->check(CLI::Range(0, 255));
  app.add_option("--scratch", arguments.options.scratch, "folder for the disk tests' file (up to 1 GiB, removed)")
      ->check(CLI::ExistingDirectory);
  app.add_option("--python", arguments.options.python, "python3 whose torch, jax, cupy and triton are looked at");
  app.add_flag("--exports", arguments.exports, "print what the driver's library exports, and end");
  app.add_flag("--quiet", arguments.quiet, "no progress on stderr");
  app.add_option("--worker", arguments.worker)->check(CLI::Range(1, static_cast<int>(kSections.size())))->group("");
  app.add_option("--check", arguments.check)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "reprise: {}\n", error.what());
    return kExitUsage;
  }
  catch_signals();
  if (arguments.exports) return print_exports();
  if (!arguments.check.empty()) return run_single_check(arguments.check, arguments.options.device);
  if (arguments.worker > 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // a probe that is killed leaves no worker behind
    // A library that prints to stdout must not spoil the result, and no program that runs on may hold the pipe.
    const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return run_worker(arguments, output);
  }
  return run_all(arguments);
}

}  // namespace
}  // namespace reprise::probe

int main(int argc, char** argv) {
  try {
    return reprise::probe::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reprise: %s\n", error.what());
    return 1;
  }
}

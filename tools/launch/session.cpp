#include "tools/launch/session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "analyzer/policies/policy.h"
#include "preload/base/run_log_keys.h"
#include "preload/base/written_files.h"
#include "preload/files/file_names.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/launch/frameworks.h"
#include "tools/launch/program.h"
#include "tools/launch/watch/course.h"

namespace reprise::tools {
namespace {

Status parse_sizes(const SessionOptions& options, Settings& settings) {
  if (options.budget == kFreeMemory) {
    settings.budget.free = true;
  } else if (!options.budget.empty()) {
    Result<Budget> budget = parse_budget(options.budget);
    if (!budget.ok()) return budget.status();
    settings.budget = budget.value();
  }
  if (!options.host_memory.empty()) {
    Result<Budget> host = parse_budget(options.host_memory, "--host-memory");
    if (!host.ok()) return host.status();
    settings.host_memory = host.value();
  }
  if (!options.fragmentation_limit.empty()) {
    Result<uint64_t> limit = parse_size(options.fragmentation_limit);
    if (!limit.ok()) return {StatusCode::invalid_argument, "--fragmentation-limit: " + limit.status().message()};
    settings.fragmentation_limit = limit.value();
  }
  return {};
}

// Files that are read again when the program has ended: not stdout, by whatever name, /dev/null or a pipe. Paths become
// absolute: the program may change its folder before the shim opens them.
Status take_output(const char* option, const std::string& path, std::string& setting, Outputs& outputs) {
  if (path.empty()) return {};
  if (path == "-" || is_stream(path) || standard_stream(path) >= 0) {
    return {StatusCode::invalid_argument, path + ": a trace, plan or run log needs a file of its own; name one"};
  }
  setting = absolute_path(path);
  outputs.writes(option, path);
  return {};
}

// Before anything of the files is removed.
Status claim_outputs(SessionOptions& options, Settings& settings) {
  Status status = claim(options.trace_option, options.trace, settings);
  if (status.ok()) status = claim("--run-log", options.run_log, settings);
  if (status.ok()) status = claim("--save-plan", options.save_plan, settings);
  settings.trace = options.trace.empty() ? "" : absolute_path(options.trace);
  settings.run_log = options.run_log.empty() ? "" : absolute_path(options.run_log);
  return status;
}

void expand_names(SessionOptions& options) {
  for (std::string* name : {&options.trace, &options.plan, &options.run_log, &options.save_plan, &options.metrics}) {
    expand_name(*name);
  }
}

// A rank of a job that has no place for its log goes on without.
void give_up_unwritable_log(SessionOptions& options) {
  if (options.run_log.empty()) return;
  const Status writable = check_writable(options.run_log);
  if (writable.ok()) return;
  say(fmt::format("--run-log {}: no run log is kept", writable.message()));
  options.run_log.clear();
}

// The program's file and those that it is given are no place for a recording.
void add_program(const ProgramArguments& program, Outputs& outputs) {
  if (const Result<std::string> path = find_program(program.arguments.front()); path.ok()) outputs.reads(path.value());
  outputs.read_by_program(program.arguments);
}

}  // namespace

void add_device_options(CLI::App& app, SessionOptions& options) {
  app.add_option("--device", options.device, "gpu, or sim: the simulated device")->check(CLI::IsMember({"gpu", "sim"}));
  app.add_option("--framework", options.framework,
                 "What the program is written in: auto (default: whatever is there), torch, jax, or none: no allocator "
                 "settings, and nothing before NVIDIA's libraries")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kFrameworks), std::end(kFrameworks))));
  app.add_option("--host-memory", options.host_memory,
                 "Cap of the pinned host memory that holds what is off the device, as a size or % of RAM");
}

CLI::Option* add_safety_option(CLI::App& app, std::string& safety) {
  return app
      .add_option(
          "--safety", safety,
          "strict: memory that a kernel reaches unseen is right, or the kernel faults; proven (default): the same, and "
          "faster where kernels' code proves that they reach nothing unseen; audited: also where `reprise audit` has "
          "seen it; trusted: faster, and such a kernel may get wrong bytes")
      ->check(CLI::IsMember({"strict", "proven", "audited", "trusted"}));
}

void add_watch_options(CLI::App& app, SessionOptions& options) {
  app.add_flag("-q,--quiet", options.quiet, "No line on the terminal that says how it goes");
  app.add_option("--metrics", options.metrics, "Write how it goes here, as Prometheus reads it, once a second");
}

Result<Settings> check_session(SessionOptions& options, const ProgramArguments& program, Outputs outputs) {
  Settings settings;
  expand_names(options);
  give_up_unwritable_log(options);
  settings.device = options.device;
  settings.framework = options.framework;
  settings.policy = options.policy;
  settings.safety = options.safety;
  settings.examine = options.examine;
  settings.defragment = options.defragment;
  Status status = parse_sizes(options, settings);
  if (status.ok() && !options.policy.empty()) status = analyzer::check_policy(options.policy);
  if (status.ok()) status = check_program(program);
  if (status.ok()) status = take_output(options.trace_option.c_str(), options.trace, settings.trace, outputs);
  if (status.ok()) status = take_output("--run-log", options.run_log, settings.run_log, outputs);
  std::string kept_plan;
  if (status.ok()) status = take_output("--save-plan", options.save_plan, kept_plan, outputs);
  outputs.writes("--metrics", options.metrics);
  if (status.ok()) add_program(program, outputs.reads(options.plan));
  if (status.ok()) status = outputs.check();
  if (status.ok()) status = check_installation(settings);
  if (status.ok()) status = claim_outputs(options, settings);
  if (!status.ok()) return status;
  return settings;
}

Status claim(const std::string& option, std::string& path, Settings& settings) {
  if (path.empty() || !can_be_lost(path)) return {};
  Result<std::shared_ptr<const Claim>> claim = Claim::of(option, path);
  if (!claim.ok()) {
    const std::string wanted = path;
    const std::string why = claim.status().message();
    for (int number = 2; !claim.ok() && number <= kMostNames; ++number) {
      path = numbered_name(wanted, number);
      if (!std::filesystem::exists(path)) claim = Claim::of(option, path);
    }
    if (!claim.ok()) return claim.status();
    say(fmt::format("{}; this one writes {}", why, path));
  }
  settings.claims.push_back(std::move(claim.value()));
  return {};
}

void expand_name(std::string& name) {
  name = expanded_name(name, [](const char* variable) -> const char* { return std::getenv(variable); });
}

Status record_through(const TemporaryFolder& folder, Settings& settings) {
  const std::string link = folder.file("program.trace");
  if (symlink(settings.trace.c_str(), link.c_str()) != 0) {
    return {StatusCode::io_error, fmt::format("{}: {}; set TMPDIR to a writable folder", link, std::strerror(errno))};
  }
  settings.trace = link;
  return {};
}

namespace {
void append_to_run_log(const std::string& run_log, const nlohmann::ordered_json& line) {
  std::fstream file(run_log, std::ios::in | std::ios::out | std::ios::binary);
  bool whole = file_size(run_log) == 0;
  if (!whole) {
    file.seekg(-1, std::ios::end);
    whole = file.get() == '\n';  // a program that was killed may have left half a line
  }
  file.seekp(0, std::ios::end);
  file << (whole ? "" : "\n") << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << "\n";
}
}  // namespace

void log_program_end(const std::string& run_log, const Outcome& outcome, const std::string& kept_plan) {
  if (run_log.empty() || !check_readable(run_log).ok()) return;
  namespace key = run_log::program_end;
  nlohmann::ordered_json line = {{"kind", key::line.name}};
  line[key::exit_code.name] = outcome.exit_code;
  line[key::signal.name] = outcome.signal;
  line[key::command.name] = outcome.process;
  line[key::run.name] = getpid();
  if (!kept_plan.empty()) line[key::plan.name] = kept_plan;
  append_to_run_log(run_log, line);
}

void log_on_demand(const std::string& run_log, const std::string& cause, const std::string& reason,
                   uint64_t least_bytes) {
  namespace key = run_log::on_demand;
  nlohmann::ordered_json line = {{"kind", key::line.name}, {key::cause.name, cause}, {key::reason.name, reason}};
  if (least_bytes > 0) line[key::least_bytes.name] = least_bytes;
  append_to_run_log(run_log, line);
}

void log_recorded(const std::string& run_log, uint64_t calls, uint64_t iterations) {
  namespace key = run_log::recorded;
  append_to_run_log(run_log, {{"kind", key::line.name}, {key::calls.name, calls}, {key::iterations.name, iterations}});
}

Result<Outcome> run_watched(const Settings& settings, const SessionOptions& options, const ProgramArguments& program) {
  const bool on_terminal = !options.quiet && isatty(STDERR_FILENO) == 1;
  Watch watch(settings.run_log, on_terminal, options.metrics.empty() ? "" : absolute_path(options.metrics));
  return run_program(settings, program, watch.wanted() ? [&watch] { return watch.look(); } : std::function<bool()>());
}

Result<Outcome> run_program(const Settings& settings, const ProgramArguments& program,
                            const std::function<bool()>& ends) {
  for (const std::string& warning : environment_warnings(settings)) say(warning);
  return launch({program.arguments, make_environment(settings), ends});
}

}  // namespace reprise::tools

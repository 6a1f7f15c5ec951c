// What run, record and replay share: their options, the checks before the program starts, and its start. Callers: these
// three commands.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "tools/cli/command.h"
#include "tools/launch/environment.h"
#include "tools/launch/launcher.h"

namespace reprise::tools {

struct SessionOptions {
  std::string budget;
  std::string host_memory;
  std::string device = "gpu";
  std::string framework = "auto";
  std::string trace;
  std::string plan;
  std::string run_log;
  std::string policy;
  std::string safety;
  std::string examine;  // seconds
  bool defragment = false;
  std::string fragmentation_limit;
};

// The options that all three have: --device, --framework, --host-memory.
void add_device_options(CLI::App& app, SessionOptions& options);

// --safety, of run and replay.
CLI::Option* add_safety_option(CLI::App& app, std::string& safety);

// Parses sizes, checks the program, the installation and that every output can be written.
Result<Settings> check_session(const SessionOptions& options, const ProgramArguments& program);

// Starts the program under the settings and waits for it.
Result<Outcome> run_program(const Settings& settings, const ProgramArguments& program);

}  // namespace reprise::tools

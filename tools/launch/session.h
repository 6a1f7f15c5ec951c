// What run, record, replay and audit share: their options, the checks before the program starts, and its start.
// Callers: these commands.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tools/cli/command.h"
#include "tools/cli/outputs.h"
#include "tools/cli/temporary.h"
#include "tools/launch/environment.h"
#include "tools/launch/launcher.h"

namespace reprise::tools {

struct SessionOptions {
  std::string budget;
  std::string host_memory;
  std::string device = "gpu";
  std::string framework = "auto";
  std::string trace;
  std::string trace_option = "--trace";  // what it is called on the command line
  std::string plan;
  std::string run_log;
  std::string save_plan;
  std::string policy;
  std::string safety;
  std::string examine;  // seconds
  bool defragment = false;
  std::string fragmentation_limit;
  std::string metrics;
  bool quiet = false;
};

// The options that all three have: --device, --framework, --host-memory.
void add_device_options(CLI::App& app, SessionOptions& options);

// --quiet and --metrics, of run and replay.
void add_watch_options(CLI::App& app, SessionOptions& options);

// --safety, of run and replay.
CLI::Option* add_safety_option(CLI::App& app, std::string& safety);

// Parses sizes, checks the program, the installation and that every output, those that the caller has put into
// `outputs` among them, can be written and destroys nothing that is read. Names in `options` become those that are
// written: of "%r" and the like what they mean, of a file that another run writes a free one beside it, of a run log
// that cannot be written none, for that is no reason to stop a rank of a job.
Result<Settings> check_session(SessionOptions& options, const ProgramArguments& program, Outputs outputs = {});

// This run alone writes the file until `settings` is gone; "": none. What check_session() knows is claimed by it.
Status claim(const std::string& option, std::string& path, Settings& settings);

// What "%r" and the like in a name mean in this process.
void expand_name(std::string& name);

// The preloaded library puts plans beside the trace. With this they lie in the folder, whatever the user has beside his
// own trace, which is reached by a link.
Status record_through(const TemporaryFolder& folder, Settings& settings);

// Says in the run log, where there is one, of however few lines, how the command ended, and where its plan was kept;
// "": nowhere.
void log_program_end(const std::string& run_log, const Outcome& outcome, const std::string& kept_plan = "");

// ... and behind that, why nothing was planned, and what an iteration is, where that is found out when the recording is
// whole.
void log_on_demand(const std::string& run_log, const std::string& cause, const std::string& reason,
                   uint64_t least_bytes);
void log_recorded(const std::string& run_log, uint64_t calls, uint64_t iterations);

// Starts the program under the settings and waits for it; with a run log, and as `options` say, it tells how it goes.
Result<Outcome> run_watched(const Settings& settings, const SessionOptions& options, const ProgramArguments& program);
// ... `ends`: see Launch.
Result<Outcome> run_program(const Settings& settings, const ProgramArguments& program,
                            const std::function<bool()>& ends = {});

}  // namespace reprise::tools

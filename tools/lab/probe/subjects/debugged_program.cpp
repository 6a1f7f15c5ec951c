#include "tools/lab/probe/subjects/debugged_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/lab/probe/subjects/counted_programs.h"
#include "tools/lab/probe/subjects/subprocess.h"

namespace reprise::probe {
namespace {

constexpr double kSeconds = 12;  // each run: the debugger may wait for ever for a device that it cannot have
constexpr const char* kKernel = "probe_empty";
constexpr const char* kFinished = "\"launches\":";  // what the program itself prints when it is done

std::string find_debugger() {
  if (std::string found = find_program("cuda-gdb"); !found.empty()) return found;
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& folder : {std::string(home ? home : ""), std::string("/usr/local/cuda")}) {
    std::string candidate = folder + "/bin/cuda-gdb";
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// The debugger over the probe's own 1 000 launches: it stops at the first kernel, shows what runs, lets it go on. The
// shim is put into the program alone: the debugger is a user of the driver itself, and is to have the real one.
CountedProgram debugged(const SectionContext& context, const std::string& debugger, bool with_shim) {
  CountedProgram program{with_shim ? "cuda-gdb, with the shim" : "cuda-gdb, without the shim",
                         {debugger, "-nx", "-batch", "-return-child-result"},
                         debugger.empty() ? "no cuda-gdb here" : "",
                         true};
  program.shim = with_shim ? ShimIn::child : ShimIn::nobody;
  program.seconds = kSeconds;
  std::vector<std::string> commands = {"set cuda break_on_launch application", "run", "info cuda kernels",
                                       "set cuda break_on_launch none", "continue"};
  if (with_shim) commands.insert(commands.begin(), "set environment LD_PRELOAD " + counting_shim());
  for (std::string& command : commands) {
    program.arguments.emplace_back("-ex");
    program.arguments.push_back(std::move(command));
  }
  for (std::string argument : {std::string("--args"), own_path(), std::string("--check"), std::string("launches"),
                               std::string("--device"), std::to_string(context.options.device)})
    program.arguments.push_back(std::move(argument));
  return program;
}

}  // namespace

Status report_debugger(SectionContext& context) {
  const std::string debugger = find_debugger();
  // One after the other: two debuggers cannot have one device.
  for (const bool with_shim : {false, true}) {
    const std::vector<Counted> runs = run_counted(context, {debugged(context, debugger, with_shim)}, "");
    const Counted& counted = runs.front();
    // The debugger's own exit code says little: it is an error to continue a program that did not stop.
    const bool finished = counted.output.find(kFinished) != std::string::npos;
    const std::string ending = counted.status.ok() ? "it did not come to its end" : counted.status.message();
    if (!finished && !with_shim) {  // a failure with the shim would then say nothing of the shim
      context.report.note(fmt::format("{}: {}", counted.program.name, ending));
      return Status::success();
    }
    Json fact = {{"ran_to_the_end", finished},
                 {"stopped_in_kernel", counted.output.find(kKernel) != std::string::npos}};
    if (!finished) fact["ending"] = ending;
    if (with_shim) fact["launches_seen"] = counted.launches(kKernel);
    context.report.fact(counted.program.name, fact);
  }
  return Status::success();
}

}  // namespace reprise::probe

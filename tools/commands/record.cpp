// `reprise record`: runs the program and keeps the trace of its GPU calls.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/sizes.h"
#include "tools/launch/session.h"

namespace reprise::tools {
namespace {

int run_record(const SessionOptions& options, const ProgramArguments& program) {
  Result<Settings> settings = check_session(options, program);
  if (!settings.ok()) return fail(settings.status());
  const std::string& trace = settings.value().trace;
  remove_old(trace);
  Result<Outcome> outcome = run_program(settings.value(), program);
  if (!outcome.ok()) return fail(outcome.status());
  const uint64_t bytes = file_size(trace);
  say(bytes == 0 ? fmt::format("{}: nothing was recorded: the program made no CUDA call", options.trace)
                 : fmt::format("recorded {} ({}); next: reprise plan {} --budget 50% -o a.plan", options.trace,
                               format_bytes(bytes), options.trace));
  return end_like(outcome.value());
}

}  // namespace

Action declare_record(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<SessionOptions>();
  app.add_option("-o,--output", options->trace, "The trace to write")->required();
  app.add_option("--budget", options->budget, "Stay within this budget while recording, as in 12GiB or 50%");
  add_device_options(app, *options);
  app.footer("As in: reprise record [options] -o TRACE -- program arguments...");
  return [options, &program] { return run_record(*options, program); };
}

}  // namespace reprise::tools

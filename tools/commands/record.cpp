// `reprise record`: runs the program and keeps the trace of its GPU calls.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "analyzer/planner/planner.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/doctor/checks.h"
#include "tools/launch/old_files.h"
#include "tools/launch/recording.h"
#include "tools/launch/session.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

// The smallest tenth of the peak for which there is a plan, above 90 % the smallest percentage; "": there is none, for
// no iteration was found, or as its plan would take more than the program.
std::string budget_with_a_plan(const std::string& path) {
  const Result<trace::Trace> trace = load_trace(path);
  if (!trace.ok()) return {};
  const Result<analyzer::Workload> workload = analyzer::make_workload(trace.value(), {});
  if (!workload.ok()) return {};
  int percent = 50;
  while (percent < 100 && share_of_peak(workload.value(), percent / 100.0) < least_budget(workload.value())) {
    percent += percent < 90 ? 10 : 1;
  }
  if (percent == 100) return {};  // which holds everything
  return fmt::format("{}%", percent);
}

std::string next_step(const std::string& name, const std::string& path) {
  const std::string budget = budget_with_a_plan(path);
  if (budget.empty()) return fmt::format("reprise report {} -o {}", name, free_page_beside(name));  // which says why
  return fmt::format("reprise plan {} --budget {}", name, budget);
}

int run_record(const SessionOptions& options, const ProgramArguments& program) {
  Result<Settings> checked = check_session(options, program);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  const std::string trace = settings.trace;
  OldFiles old;
  old.set_aside(options.trace);
  std::optional<TemporaryFolder> folder;
  if (settings.budget.set()) {  // then the preloaded library plans, too
    Result<TemporaryFolder> made = TemporaryFolder::create();
    if (!made.ok()) return fail(made.status());
    folder.emplace(std::move(made.value()));
    if (Status status = record_through(*folder, settings); !status.ok()) return fail(status);
  }
  say_without_driver(settings.device == "sim");
  Result<Outcome> outcome = run_program(settings, program);
  if (!outcome.ok()) return fail(outcome.status());
  folder.reset();
  const Recording recording = look_at_recording(options.trace, trace, outcome.value());
  switch (recording.state) {
    case RecordingState::none:
      say(fmt::format("{}: nothing was recorded: {}", options.trace, why_no_calls(settings.device == "sim")));
      break;
    case RecordingState::whole:
      say(fmt::format("{}; next: {}", recording.line, next_step(options.trace, trace)));
      break;
    case RecordingState::cut_short:
    case RecordingState::failed:
      say(recording.line);
  }
  old.settle();
  const int exit_code = end_like(outcome.value());
  return exit_code == 0 && recording.state == RecordingState::failed ? kExitFailure : exit_code;
}

}  // namespace

Action declare_record(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<SessionOptions>();
  options->trace_option = "-o";
  app.add_option("-o,--output", options->trace, "The trace to write")->required();
  app.add_option("--budget", options->budget, "Stay within this budget while recording, as in 12GiB or 50%");
  add_device_options(app, *options);
  app.footer(
      "As in: reprise record [options] -o TRACE -- program arguments...\nExit code: the program's; 1 when it ended "
      "well "
      "and the recording could not be written.");
  return [options, &program] { return run_record(*options, program); };
}

}  // namespace reprise::tools

// `reprise record`: runs the program and keeps the trace of its GPU calls.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/planner/planner.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/doctor/checks.h"
#include "tools/launch/old_files.h"
#include "tools/launch/program.h"
#include "tools/launch/recording.h"
#include "tools/launch/session.h"
#include "tools/report/inputs.h"
#include "tools/report/log/which_program.h"

namespace reprise::tools {
namespace {

// The smallest tenth of the peak for which there is a plan, above 90 % the smallest percentage; "": there is none, for
// no iteration was found, or as its plan would take more than the program.
std::string budget_with_a_plan(const std::string& path) {
  const Result<trace::Trace> trace = load_trace(path);
  if (!trace.ok()) return {};
  const Result<analyzer::Workload> workload = analyzer::Planning(trace.value(), {}).workload();
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
  if (budget.empty()) return "reprise report " + name;  // which says why
  return fmt::format("reprise plan {} --budget {}", name, budget);
}

struct Recorded {
  std::string path;
  std::string program;
  report::ProgramFigures figures;
};

// Those that can be read, in the order of their starts.
std::vector<Recorded> read_recordings(const std::vector<std::string>& paths) {
  std::vector<Recorded> programs;
  for (const std::string& path : paths) {
    const Result<trace::Trace> trace = load_trace(path);
    if (!trace.ok()) continue;
    const auto program = trace.value().info.find("program");
    Recorded one{path, program == trace.value().info.end() ? "" : program->second, {}};
    one.figures.asked_bytes = report::asked_bytes(trace.value());
    one.figures.start_ns = recorded_since(path);
    programs.push_back(std::move(one));
  }
  std::sort(programs.begin(), programs.end(),
            [](const Recorded& a, const Recorded& b) { return a.figures.start_ns < b.figures.start_ns; });
  return programs;
}

uint64_t repeated_calls(const std::string& path) {
  const Result<trace::Trace> trace = load_trace(path);
  if (!trace.ok()) return 0;
  const Result<analyzer::Workload> workload = analyzer::Planning(trace.value(), {}).workload();
  if (!workload.ok()) return 0;
  const analyzer::Iteration& iteration = workload.value().iteration;
  return uint64_t{iteration.occurrences} * iteration.call_count;
}

// The one whose recording is kept. What repeats takes long to find, and is looked for where it matters.
report::Chosen which_of(std::vector<Recorded>& programs) {
  uint64_t most = 0;
  for (const Recorded& one : programs) most = std::max(most, one.figures.asked_bytes);
  std::vector<Recorded*> alike;
  for (Recorded& one : programs) {
    if (report::asked_for_the_most(one.figures.asked_bytes, most)) alike.push_back(&one);
  }
  if (alike.size() > 1) {
    for (Recorded* const one : alike) one->figures.repeated_calls = repeated_calls(one->path);
  }
  std::vector<report::ProgramFigures> figures;
  figures.reserve(programs.size());
  for (const Recorded& one : programs) figures.push_back(one.figures);
  return report::which_program(figures);
}

// Each program that used the device was recorded: the trace is of one of them, and the others are told.
void choose_trace(const std::string& name, const Settings& settings) {
  std::vector<std::string> all = recordings_beside(settings.trace);
  if (all.empty()) return;
  all.push_back(settings.trace);
  std::vector<Recorded> programs = read_recordings(all);
  const report::Chosen chosen = which_of(programs);
  const size_t shown = chosen.place;
  const std::string& path = programs.empty() ? settings.trace : programs[shown].path;
  if (const Status status = choose_recording(settings.trace, path, false); !status.ok()) say(status.message());
  if (programs.size() < 2) return;
  std::vector<std::string> others;
  for (size_t i = 0; i < programs.size(); ++i) {
    if (i != shown) others.push_back(programs[i].program);
  }
  say(fmt::format("{}: of {}, which {}; the others ({}) are not kept: record each by itself", name,
                  programs[shown].program, report::which_one(chosen), report::others_in_words(others)));
}

// Beside whatever is there.
std::string own_name(const ProgramArguments& program) {
  if (program.arguments.empty()) return "program.trace";  // which is refused
  const std::string wanted = short_name(program.arguments) + ".trace";
  std::string name = wanted;
  for (int number = 2; std::filesystem::exists(name); ++number) name = numbered_name(wanted, number);
  return name;
}

int run_record(SessionOptions& options, const ProgramArguments& program) {
  if (options.trace.empty()) options.trace = own_name(program);
  Result<Settings> checked = check_session(options, program);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  const std::string trace = settings.trace;
  OldFiles old;
  old.set_aside(options.trace);
  // For what there is besides the trace: plans within a budget, and recordings of more programs than one.
  std::optional<TemporaryFolder> folder;
  Result<TemporaryFolder> made = TemporaryFolder::create();
  if (made.ok()) {
    folder.emplace(std::move(made.value()));
    if (Status status = record_through(*folder, settings); !status.ok()) return fail(status);
    settings.keeps.files = true;
  } else if (settings.budget.set()) {
    return fail(made.status());
  }
  say_without_driver(settings.device == "sim");
  Result<Outcome> outcome = run_program(settings, program);
  if (!outcome.ok()) return fail(outcome.status());
  if (folder) choose_trace(options.trace, settings);
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
  app.add_option("-o,--output", options->trace, "The trace to write (default: PROGRAM.trace, or a free name like it)");
  app.add_option("--budget", options->budget, "Stay within this budget while recording, as in 12GiB or 50%");
  add_device_options(app, *options);
  app.footer(
      "As in: reprise record [options] -- program arguments...\nExit code: the program's; 1 when it ended "
      "well "
      "and the recording could not be written.");
  return [options, &program] { return run_record(*options, program); };
}

}  // namespace reprise::tools

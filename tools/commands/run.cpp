// `reprise run`: everything in one command: the program runs within the budget, and a report says what happened.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "analyzer/policies/policy.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/doctor/checks.h"
#include "tools/launch/defragment.h"
#include "tools/launch/old_files.h"
#include "tools/launch/program.h"
#include "tools/launch/recording.h"
#include "tools/launch/session.h"
#include "tools/report/inputs.h"

namespace reprise::tools {
namespace {

struct RunOptions {
  SessionOptions session;
  std::string report;
  bool keep = false;
  bool no_memory = false;
};

// What the user did not name lives in a private folder for as long as it is needed.
Status use_private_files(Settings& settings, const TemporaryFolder& folder) {
  Status status;
  if (settings.trace.empty()) {
    settings.trace = folder.file("program.trace");
  } else {
    status = record_through(folder, settings);
  }
  if (settings.run_log.empty()) settings.run_log = folder.file("program.run");
  settings.keeps.files = true;
  return status;
}

// As the footer has it: what has no name of the user's goes with the private folder.
std::string shown(const std::string& name, const char* otherwise) { return name.empty() ? otherwise : name; }

// Whatever of trace, plan and run log is there and readable. The plan was made by the shim's own planner.
void load_what_there_is(const Settings& settings, const SessionOptions& named, LoadedFiles& files) {
  if (Result<trace::Trace> trace = load_trace(settings.trace); trace.ok()) {
    files.trace = std::move(trace.value());
    files.tell(settings.trace, FileKind::trace, shown(named.trace, "not kept (--trace)"));
  }
  Result<report::RunLog> log = report::read_run_log(settings.run_log);
  if (!log.ok()) return;
  files.log = std::move(log.value());
  const std::string& path = files.log->plan_path;
  if (Result<plan::Plan> plan = load_plan(path); !path.empty() && plan.ok()) {
    files.plan = std::move(plan.value());
    files.tell(path, FileKind::plan, shown(named.save_plan, "not kept (--save-plan)"));
  }
  files.tell(settings.run_log, FileKind::run_log, shown(named.run_log, "not kept (--run-log)"));
}

// The program's last words on why nothing was planned were of a part of the recording, or it had none, and what an
// iteration of it is its recording tells alone.
void keep_what_was_found(const std::string& run_log, LoadedFiles& files, const report::Inputs& inputs) {
  if (!files.log) return;
  if (files.log->recorded) log_recorded(run_log, files.log->recorded->calls, files.log->recorded->iterations);
  const auto found = report::found_in_recording(inputs);
  if (!found) return;
  log_on_demand(run_log, found->cause, found->reason, found->least_bytes);
  files.log->reasons.push_back(*found);
}

// The program has run: whatever goes wrong with its report is said, and changes nothing of how it ended.
void write_report(const Settings& settings, const RunOptions& options, std::string path, const Outcome& outcome,
                  const ProgramArguments& program) {
  Progress progress;
  progress.step("making the report");
  LoadedFiles files;
  load_what_there_is(settings, options.session, files);
  if (!files.trace && !files.log) {
    progress.clear();
    say("no report: " + why_no_calls(settings.device == "sim"));
    return;
  }
  report::Inputs inputs = files.examined();
  for (const std::string& word : program.arguments) inputs.program += (inputs.program.empty() ? "" : " ") + word;
  if (file_size(settings.run_log) == 0) inputs.ending = report::ending_of(outcome.exit_code, outcome.signal);
  inputs.ran_here = true;
  inputs.budget_bytes = settings.budget.bytes;
  keep_what_was_found(settings.run_log, files, inputs);
  if (files.log) {  // which has grown
    files.named.pop_back();
    files.tell(settings.run_log, FileKind::run_log, shown(options.session.run_log, "not kept (--run-log)"));
    inputs.files = files.named;
  }
  const Status written = write_output(path, !options.report.empty(), report::make_page(report::make_data(inputs)));
  progress.clear();
  if (!written.ok()) {
    say(written.message());
  } else {
    const std::string free = settings.budget.free && files.log && files.log->budget_bytes != 0
                                 ? fmt::format(" within what was free, {}", format_bytes(files.log->budget_bytes))
                                 : "";
    say(fmt::format("{}{}; report: {}", report::make_summary(inputs), free, path));
  }
}

// The recording of the program that the run log is read as; "": there is none.
std::string find_recording(const std::string& own, const std::vector<std::string>& beside, const report::RunLog& log) {
  if (log.program.empty() || recorded_since(own) == log.recording) return own;
  const auto is_of_it = [&](const std::string& path) { return recorded_since(path) == log.recording; };
  const auto found = std::find_if(beside.begin(), beside.end(), is_of_it);
  return found == beside.end() || log.recording == 0 ? "" : *found;
}

// Each program of the run was recorded.
void choose_trace(const Settings& settings, const RunOptions& options, const report::RunLog& log) {
  const std::vector<std::string> beside = recordings_beside(settings.trace);
  if (beside.empty()) return;
  const std::string chosen = find_recording(settings.trace, beside, log);
  if (const Status status = choose_recording(settings.trace, chosen, options.keep); !status.ok()) say(status.message());
  if (const std::string& name = options.session.trace; chosen.empty() && !name.empty()) {
    say(fmt::format("{}: nothing was recorded of {}", name, command_of(log)));
  }
}

// What there is of them, beside the files that are of one program.
void tell_of_others(const report::RunLog& log, const std::string& kept_in) {
  if (log.others.empty()) return;
  say(fmt::format(
      "{}: trace, plan and report of this run are of the one that {}, the run log is of all; those of the others ({}) "
      "{}",
      report::which_programs(log.chosen), report::why_this_one(log.chosen), report::others_in_words(log.others),
      kept_in.empty() ? "are not kept: run each by itself, or add --keep" : "are in " + kept_in));
}

// The plan that the program's planner made goes with the private folder, unless it is wanted. Where it was kept.
std::string keep_plan(const report::RunLog& log, const std::string& name) {
  if (name.empty()) return {};
  const Result<std::string> plan = log.plan_path.empty() ? Result<std::string>(Status{}) : read_file(log.plan_path);
  if (log.plan_path.empty() || !plan.ok()) {
    const std::string whose = log.others.empty() ? "in this run" : "for " + command_of(log);
    const std::string others = report::others_in_words(log.planned_others);
    say(fmt::format("{}: no plan was made {}, so there is none to keep{}{}", name, whose, about_old_file(name),
                    others.empty() ? "" : "; plans were made for others: " + others));
    return {};
  }
  if (const Status written = write_file(name, plan.value()); !written.ok()) {
    say(written.message());
    return {};
  }
  return absolute_path(name);
}

// A trace that the user wants to keep; of one that is whole there is nothing to say.
void tell_about_trace(const std::string& name, const Outcome& outcome) {
  if (name.empty()) return;
  const Recording recording = look_at_recording(name, name, outcome);
  if (recording.state == RecordingState::cut_short || recording.state == RecordingState::failed) say(recording.line);
}

int run_run(RunOptions& options, const ProgramArguments& program) {
  if (options.session.defragment) {
    options.session.budget.clear();
    say_without_driver(options.session.device == "sim");
    return run_defragmented(options.session, program);
  }
  if (options.session.budget.empty()) return fail(parse_budget("").status());
  // What the environment says is overruled by what is typed alone.
  const char* const of_environment = std::getenv("REPRISE_BUDGET");
  const bool is_set = of_environment != nullptr && *of_environment != '\0';
  if (options.session.budget == kFreeMemory && is_set) options.session.budget.clear();
  expand_name(options.report);
  const std::string own_name = fmt::format("reprise-report-{}.html", short_name(program.arguments));
  Outputs outputs;
  if (options.report.empty()) outputs.chooses(own_name);
  outputs.writes("-o", options.report);
  Result<Settings> checked = check_session(options.session, program, outputs);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  const char* const plans = std::getenv("REPRISE_KEEP_PLANS");
  if (plans == nullptr || *plans == '\0') settings.keeps.plans = "1";
  if (options.no_memory) settings.keeps.plans = "0";
  if (Status status = claim("-o", options.report, settings); !status.ok()) return fail(status);
  const std::string report = absolute_path(options.report.empty() ? own_name : options.report);
  Result<TemporaryFolder> folder = TemporaryFolder::create(options.keep);
  if (!folder.ok()) return fail(folder.status());
  OldFiles old;
  old.set_aside(options.session.trace);
  old.set_aside(options.session.run_log);
  if (Status status = use_private_files(settings, folder.value()); !status.ok()) return fail(status);
  say_without_driver(settings.device == "sim");
  Result<Outcome> outcome = run_watched(settings, options.session, program);
  if (!outcome.ok()) return fail(outcome.status());
  const Result<report::RunLog> read = report::read_run_log(settings.run_log);
  const report::RunLog log = read.ok() ? read.value() : report::RunLog{};
  choose_trace(settings, options, log);
  log_program_end(settings.run_log, outcome.value(), keep_plan(log, options.session.save_plan));
  tell_about_trace(options.session.trace, outcome.value());
  tell_of_others(log, options.keep ? folder.value().path() : "");
  write_report(settings, options, report, outcome.value(), program);
  old.settle();
  if (options.keep) say(fmt::format("files of this run are kept in {}", folder.value().path()));
  folder.value().remove();  // a program that died of a signal takes us along in the next line
  return end_like(outcome.value());
}

}  // namespace

Action declare_run(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<RunOptions>();
  options->session.budget = kFreeMemory;
  auto* defragment = app.add_flag("--defragment", options->session.defragment,
                                  "No budget, no plan: stitch large allocations together from what is free");
  app.add_option("--fragmentation-limit", options->session.fragmentation_limit,
                 "With --defragment: smaller pieces are neither split nor stitched (default: a chunk)")
      ->needs(defragment);
  for (auto* other : {
           app.add_option("--budget", options->session.budget,
                          "Device memory to stay within, as in 12GiB or 50% of the peak (default: what is free)"),
           app.add_option(
               "-o,--output", options->report,
               "The report to write (default: reprise-report-PROGRAM.html, or -2.html and so on where there is one)"),
           app.add_option("--trace", options->session.trace, "Keep the recorded trace here"),
           app.add_option("--save-plan", options->session.save_plan, "Keep the first plan that is made here"),
           name_values(app.add_option("--policy", options->session.policy, "How to plan (default: the best of all)"),
                       "POLICY", analyzer::known_policies()),
           add_safety_option(app, options->session.safety),
           app.add_option(
                  "--examine", options->session.examine,
                  "Seconds to spend on finding out what kernels do, which are launched again for that (default: "
                  "0); `reprise facts` shows it")
               ->check(CLI::Range(0, 86400)),
       }) {
    other->excludes(defragment);
  }
  app.add_option("--run-log", options->session.run_log, "Keep the run log here");
  app.add_flag("--no-memory", options->no_memory, "Use no plans of earlier runs, and keep none for the next one")
      ->excludes(defragment);
  app.add_flag("--keep", options->keep, "Keep the temporary files and say where they are");
  add_watch_options(app, options->session);
  add_device_options(app, options->session);
  app.footer(
      "As in: reprise run [options] -- program arguments... or: reprise run --defragment -- program arguments...");
  return [options, &program] { return run_run(*options, program); };
}

}  // namespace reprise::tools

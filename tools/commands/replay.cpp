// `reprise replay`: runs the program under a plan that was made before. A plan for another program is refused here,
// before anything starts.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "analyzer/plan/enforced.h"
#include "preload/base/room_figures.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/run_log_value.h"
#include "tools/doctor/checks.h"
#include "tools/launch/old_files.h"
#include "tools/launch/program.h"
#include "tools/launch/session.h"
#include "tools/report/inputs.h"
#include "tools/report/log/redacted.h"

namespace reprise::tools {
namespace {

// As the preloaded library takes it: the option, else the variable, else the default.
plan::Safety safety_of(const Settings& settings) {
  const char* const set = std::getenv("REPRISE_SAFETY");
  plan::Safety safety = plan::kDefaultSafety;
  plan::read_safety(!settings.safety.empty() || set == nullptr ? settings.safety.c_str() : set, &safety);
  return safety;
}

uint64_t bytes_of(const Budget& budget, uint64_t peak_bytes) {
  return budget.bytes > 0 ? budget.bytes
                          : static_cast<uint64_t>(budget.percent / 100 * static_cast<double>(peak_bytes));
}

Status check_plan(const std::string& path, const plan::Plan& plan, const Settings& settings,
                  const ProgramArguments& program) {
  if (const std::string why = plan::why_not_enforced(plan, safety_of(settings)); !why.empty()) {
    return {StatusCode::unsupported, fmt::format("{}: {}", path, why)};
  }
  const uint64_t identity = identity_of_program(program.arguments);
  if (identity != 0 && plan.program_hash != 0 && identity != plan.program_hash) {
    return {StatusCode::unsupported,
            fmt::format("{}: made for another program ({}), not for {}; record and plan this one", path,
                        report::in_parentheses(plan.program), program.arguments.front())};
  }
  // A percentage was rounded when the plan was made, too: down to chunks at most.
  const Budget& budget = settings.budget;
  const uint64_t bytes = bytes_of(budget, plan.peak_bytes);
  if (!budget.set() || bytes + (budget.bytes > 0 ? 0 : plan.chunk_bytes) >= plan.budget_bytes) return {};
  const std::string made_for = format_bytes(plan.budget_bytes);
  if (const std::string none = plan::why_no_plan_fits(plan, bytes); !none.empty()) {
    return {
        StatusCode::unsupported,
        fmt::format("{}: made for a budget of {}, which is more than --budget allows, and {}", path, made_for, none)};
  }
  return {StatusCode::unsupported,
          fmt::format("{}: made for a budget of {}, which is more than --budget allows; make a plan for {}", path,
                      made_for, format_bytes(bytes))};
}

// Whose budget it is, where the user has set another one for all that he runs.
void say_budget_in_force(const std::string& path, const plan::Plan& plan) {
  const char* const set = std::getenv("REPRISE_BUDGET");
  if (set == nullptr || *set == '\0') return;
  const Result<Budget> budget = parse_budget(set);
  if (budget.ok() && bytes_of(budget.value(), plan.peak_bytes) == plan.budget_bytes) return;
  say(fmt::format("{}: its budget, {}, is in force, and REPRISE_BUDGET={} is not; --budget changes it", path,
                  format_bytes(plan.budget_bytes), set));
}

// A budget that the device cannot give is not the one to make larger.
std::string how_it_gets_room(const report::RunLog& log, const plan::Plan& plan) {
  if (!log.room || log.room->room >= log.budget_bytes) {
    const std::string none = plan::why_no_plan_fits(plan, log.budget_bytes);
    return none.empty() ? "give it a larger budget, or make a plan for this one" : none;
  }
  return how_to_get_room(*log.room, log.budget_bytes) +
         (log.room->room >= plan.minimum_bytes ? ", or make a plan for " + typed_bytes(log.room->room) : "");
}

// A plan that fits nothing in the program costs only speed, which would go unnoticed. Empty: it applied,
// or memory could not be managed, which was said when that was known.
std::string why_it_never_applied(const std::string& plan, const plan::Plan& made, const report::RunLog& log) {
  if (log.iterations_planned > 0 || log.not_managed) return {};
  const char* const advice =
      "memory was managed on demand; a plan fits the program, arguments and sizes that it was recorded with: record "
      "and plan this command";
  if (log.activation_count == 0) {
    const std::string why = report::why_unplanned({nullptr, nullptr, &log});
    if (!log.reasons.empty() && says(log.reasons.back().cause, run_log::on_demand::refused)) {
      return fmt::format("{}: the plan never applied: {}; memory was managed on demand: {}", plan, why,
                         how_it_gets_room(log, made));
    }
    return fmt::format("{}: the plan never applied: {}; {}", plan, why, advice);
  }
  return fmt::format("{}: the plan never applied for a whole iteration: the program left it {}, so {}", plan,
                     log.activation_count == 1 ? "once" : fmt::format("{} times", log.activation_count), advice);
}

// As `run` ends: with what came of it, and where there is more to be seen.
void tell_how_it_went(const SessionOptions& options, const plan::Plan& made, const Settings& settings) {
  if (file_size(settings.run_log) == 0) {
    return say(fmt::format("{}: the plan was not used: {}", options.plan, why_no_calls(settings.device == "sim")));
  }
  const Result<report::RunLog> log = report::read_run_log(settings.run_log);
  if (!log.ok()) return say(log.status().message());
  report::Inputs inputs{nullptr, &made, &log.value()};
  inputs.ending = log.value().ending;
  inputs.ran_here = true;
  inputs.budget_bytes = settings.budget.bytes;
  if (const std::string why = why_it_never_applied(options.plan, made, log.value()); !why.empty()) {
    say(why);
    inputs.reason_is_told = true;
  }
  const std::string more = options.run_log.empty()
                               ? "for a report: --run-log FILE"
                               : fmt::format("next: reprise report {} {}", options.plan, options.run_log);
  say(fmt::format("{}; {}", report::make_summary(inputs), more));
}

int run_replay(SessionOptions& options, const ProgramArguments& program) {
  Result<Settings> checked = check_session(options, program);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  Result<plan::Plan> plan = load_plan(options.plan);
  if (!plan.ok()) return fail(plan.status());
  const Status fits = check_plan(options.plan, plan.value(), settings, program);
  if (!fits.ok()) return fail(fits);
  if (const std::string other = plan::made_for_another(plan.value(), safety_of(settings)); !other.empty()) {
    say(fmt::format("{}: {}", options.plan, other));
  }
  const uint64_t allowed = bytes_of(settings.budget, plan.value().peak_bytes);
  if (const std::string less = plan::made_for_less(plan.value(), allowed); !less.empty()) {
    say(fmt::format("{}: {}", options.plan, less));
  }
  settings.plan = absolute_path(options.plan);
  if (!settings.budget.set()) {
    say_budget_in_force(options.plan, plan.value());
    settings.budget.bytes = plan.value().budget_bytes;
  }
  // To see what came of the plan.
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (settings.run_log.empty() && folder.ok()) settings.run_log = folder.value().file("program.run");
  OldFiles old;
  old.set_aside(options.run_log);
  say_without_driver(settings.device == "sim");
  Result<Outcome> outcome = run_watched(settings, options, program);
  if (!outcome.ok()) return fail(outcome.status());
  log_program_end(settings.run_log, outcome.value());
  if (settings.run_log.empty()) {
    say(folder.status().message() + ": so what came of the plan is not known");
  } else {
    tell_how_it_went(options, plan.value(), settings);
  }
  old.settle();
  if (folder.ok()) folder.value().remove();
  return end_like(outcome.value());
}

}  // namespace

Action declare_replay(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<SessionOptions>();
  app.add_option("--plan", options->plan, "The plan to follow")->required();
  app.add_option("--budget", options->budget, "Device memory to stay within (default: that of the plan)");
  app.add_option("--run-log", options->run_log, "Write what happens here, for a report");
  add_safety_option(app, options->safety);
  add_watch_options(app, *options);
  add_device_options(app, *options);
  app.footer("As in: reprise replay --plan a.plan [options] -- program arguments...");
  return [options, &program] { return run_replay(*options, program); };
}

}  // namespace reprise::tools

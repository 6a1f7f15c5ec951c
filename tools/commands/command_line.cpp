#include "tools/commands/command_line.h"

#include <string>

#include "preload/trace/nearest.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/version.h"
#include "tools/code/code.h"
#include "tools/manual/help_formatter.h"

namespace reprise::tools {
namespace {

constexpr CommandRow kCommands[] = {
    {"run", "Run a program within a memory budget and report what happened", declare_run},
    {"record", "Run a program and record its GPU calls into a trace", declare_record},
    {"plan", "Make a plan for a memory budget from a trace", declare_plan},
    {"simulate", "Say what budgets cost on a machine, for a trace or a task graph", declare_simulate},
    {"workload", "Make the task graph of a published workload, for plan and simulate", declare_workload},
    {"replay", "Run a program under a plan that was made before", declare_replay},
    {"status", "Say how a run goes", declare_status},
    {"report", "Make a report from a trace, a plan and a run log", declare_report},
    {"compare", "Say what changed from one run or plan to another", declare_compare},
    {"top", "Print what costs most: call sites, tensors, kernels", declare_top},
    {"dump", "Print a trace, a plan or a run log as text", declare_dump},
    {"export", "Write a trace, a plan or a run log in the format of another tool", declare_export},
    {"audit", "Run a program to see which of its kernels touch nothing but their operands, for --safety audited",
     declare_audit},
    {"facts", "Show what is known of kernels: what they read and write, and why that is thought", declare_facts},
    {"code",
     "Show what the machine code of kernels proves: which operands they read and write, and by which instruction",
     declare_code},
    {"doctor", "Check whether Reprise can work on this machine", declare_doctor},
    {"bug", "Pack files without your names, and what doctor says, to report a bug", declare_bug},
    {"help", "Print this, the help of a command or of the environment, man pages, completions", declare_help},
};

// The program and its arguments stand behind the first "--"; nothing of them is ours to interpret.
ProgramArguments split_program(int& argc, char** argv) {
  ProgramArguments program;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) != "--") continue;
    program.separated = true;
    program.arguments.assign(argv + i + 1, argv + argc);
    argc = i;
    break;
  }
  return program;
}

int refuse_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandRow& row : kCommands) names.emplace_back(row.name);
  const std::string meant = did_you_mean(name, names);
  return fail_usage(name + ": no such command" + (meant.empty() ? "; see 'reprise --help'" : meant));
}

bool is_command(const std::string& name) {
  for (const CommandRow& row : kCommands) {
    if (name == row.name) return true;
  }
  return false;
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv,
                       const std::string& program) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version print and succeed
  if (app.get_subcommands().empty() && dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) {
    return fail_usage("no command given; see 'reprise --help'");
  }
  return fail_usage(explain(app, error, argc, argv, program));
}

}  // namespace

CommandLine::CommandLine() : app_("Runs CUDA and PyTorch programs in less GPU memory than they need.", "reprise") {
  app_.formatter(make_help_formatter());  // commands take it over
  app_.set_version_flag("--version", "reprise " + version_text());
  app_.require_subcommand(1);
  for (const CommandRow& row : kCommands) {
    CLI::App* command = app_.add_subcommand(row.name, row.help);
    actions_.emplace_back(command, row.declare(*command, program_));
  }
  name_kinds_of_values(app_);
}

Action CommandLine::read(int argc, char** argv, int* exit_code) {
  program_ = split_program(argc, argv);
  if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1])) {
    *exit_code = refuse_command(argv[1]);
    return {};
  }
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool refused = error.get_exit_code() != 0;  // not --help
    const std::string dashes = refused && !program_.separated ? explain_missing_dashes(app_, argc, argv) : "";
    const std::string behind = program_.arguments.empty() ? "" : program_.arguments.front();
    *exit_code = dashes.empty() ? report_parse_error(app_, error, argc, argv, behind) : fail_usage(dashes);
    return {};
  }
  for (const auto& [command, action] : actions_) {
    if (command->parsed()) return action;
  }
  *exit_code = kExitUsage;
  return {};
}

}  // namespace reprise::tools

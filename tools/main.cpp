// The command line `reprise`: one row per command; each command lives in its own file under commands/.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/nearest.h"
#include "tools/cli/command.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/version.h"
#include "tools/manual/variables.h"

namespace {

using reprise::tools::Action;
using reprise::tools::CommandRow;
using reprise::tools::ProgramArguments;

constexpr CommandRow kCommands[] = {
    {"run", "Run a program within a memory budget and report what happened", reprise::tools::declare_run},
    {"record", "Run a program and record its GPU calls into a trace", reprise::tools::declare_record},
    {"plan", "Make a plan for a memory budget from a trace", reprise::tools::declare_plan},
    {"simulate", "Say what budgets cost on a machine, for a trace or a task graph", reprise::tools::declare_simulate},
    {"workload", "Make the task graph of a published workload, for plan and simulate",
     reprise::tools::declare_workload},
    {"replay", "Run a program under a plan that was made before", reprise::tools::declare_replay},
    {"report", "Make a report from a trace, a plan and a run log", reprise::tools::declare_report},
    {"dump", "Print a trace, a plan or a run log as text", reprise::tools::declare_dump},
    {"export", "Write a trace, a plan or a run log in the format of another tool", reprise::tools::declare_export},
    {"audit", "Run a program to see which of its kernels touch nothing but their operands, for --safety audited",
     reprise::tools::declare_audit},
    {"facts", "Show what is known of kernels: what they read and write, and why that is thought",
     reprise::tools::declare_facts},
    {"doctor", "Check whether Reprise can work on this machine", reprise::tools::declare_doctor},
    {"help", "Print this, the help of a command or of the environment, man pages, completions",
     reprise::tools::declare_help},
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
  const std::string meant = reprise::did_you_mean(name, names);
  return reprise::tools::fail_usage(name + ": no such command" + (meant.empty() ? "; see 'reprise --help'" : meant));
}

bool is_command(const std::string& name) {
  for (const CommandRow& row : kCommands) {
    if (name == row.name) return true;
  }
  return false;
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version print and succeed
  if (app.get_subcommands().empty() && dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) {
    return reprise::tools::fail_usage("no command given; see 'reprise --help'");
  }
  return reprise::tools::fail_usage(reprise::tools::explain(app, error));
}

}  // namespace

int main(int argc, char** argv) {
  ProgramArguments program = split_program(argc, argv);
  reprise::tools::say_unknown_variables();
  if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1])) {
    return refuse_command(argv[1]);
  }
  CLI::App app{"Runs CUDA and PyTorch programs in less GPU memory than they need.", "reprise"};
  app.set_version_flag("--version", "reprise " + reprise::tools::version_text());
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const CommandRow& row : kCommands) {
    CLI::App* command = app.add_subcommand(row.name, row.help);
    actions.emplace_back(command, row.declare(*command, program));
  }
  reprise::tools::name_kinds_of_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(app, error);
  }
  for (const auto& [command, action] : actions) {
    if (command->parsed()) return action();
  }
  return reprise::tools::kExitUsage;
}

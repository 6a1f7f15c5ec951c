// The command line `reprise`: one row per command; each command lives in its own file under commands/.
#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/message.h"

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
    {"facts", "Show what is known of kernels: what they read and write, and why that is thought",
     reprise::tools::declare_facts},
    {"doctor", "Check whether Reprise can work on this machine", reprise::tools::declare_doctor},
    {"help", "Print this, the help of a command, or of environment: the variables", reprise::tools::declare_help},
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

bool is_command(const std::string& name) {
  for (const CommandRow& row : kCommands) {
    if (name == row.name) return true;
  }
  return false;
}

int report_parse_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version print and succeed
  if (app.get_subcommands().empty()) return reprise::tools::fail_usage("no command given; see 'reprise --help'");
  std::string help;
  for (const CLI::App* command : app.get_subcommands()) help = "reprise " + command->get_name() + " --help";
  return reprise::tools::fail_usage(std::string(error.what()) + "; see '" + help + "'");
}

}  // namespace

int main(int argc, char** argv) {
  ProgramArguments program = split_program(argc, argv);
  if (argc > 1 && argv[1][0] != '-' && !is_command(argv[1])) {
    return reprise::tools::fail_usage(std::string(argv[1]) + ": no such command; see 'reprise --help'");
  }
  CLI::App app{"Runs CUDA and PyTorch programs in less GPU memory than they need.", "reprise"};
  app.set_version_flag("--version", std::string("reprise ") + REPRISE_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const CommandRow& row : kCommands) {
    CLI::App* command = app.add_subcommand(row.name, row.help);
    actions.emplace_back(command, row.declare(*command, program));
  }
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

// What a command is: a row in main.cpp's table whose declare function adds options and returns what to do after
// parsing. Callers: main.cpp, which has the table; tools/commands, which has the functions; tools/launch.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace reprise::tools {

// What stood behind "--" on the command line.
struct ProgramArguments {
  bool separated = false;  // there was a "--"
  std::vector<std::string> arguments;
};

using Action = std::function<int()>;  // returns the exit code

struct CommandRow {
  const char* name;
  const char* help;
  Action (*declare)(CLI::App& app, const ProgramArguments& program);
};

// `program` outlives the action.
Action declare_run(CLI::App& app, const ProgramArguments& program);
Action declare_record(CLI::App& app, const ProgramArguments& program);
Action declare_plan(CLI::App& app, const ProgramArguments& program);
Action declare_simulate(CLI::App& app, const ProgramArguments& program);
Action declare_workload(CLI::App& app, const ProgramArguments& program);
Action declare_replay(CLI::App& app, const ProgramArguments& program);
Action declare_report(CLI::App& app, const ProgramArguments& program);
Action declare_compare(CLI::App& app, const ProgramArguments& program);
Action declare_status(CLI::App& app, const ProgramArguments& program);
Action declare_top(CLI::App& app, const ProgramArguments& program);
Action declare_bug(CLI::App& app, const ProgramArguments& program);
Action declare_dump(CLI::App& app, const ProgramArguments& program);
Action declare_export(CLI::App& app, const ProgramArguments& program);
Action declare_audit(CLI::App& app, const ProgramArguments& program);
Action declare_facts(CLI::App& app, const ProgramArguments& program);
Action declare_doctor(CLI::App& app, const ProgramArguments& program);
Action declare_help(CLI::App& app, const ProgramArguments& program);

}  // namespace reprise::tools

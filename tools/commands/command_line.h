// The command line as a whole: all commands with their options, and what an invocation asks for. Callers: main, and the
// fuzz tests, which read many.
#pragma once
#include <CLI/CLI.hpp>
#include <utility>
#include <vector>

#include "tools/cli/command.h"

namespace reprise::tools {

class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What to do; nothing where it was done (--help) or where the line cannot be understood, which is said on stderr:
  // *exit_code then has what the process ends with.
  Action read(int argc, char** argv, int* exit_code);

 private:
  CLI::App app_;
  ProgramArguments program_;
  std::vector<std::pair<CLI::App*, Action>> actions_;
};

}  // namespace reprise::tools

// Runs another program with a time limit and captures what it prints. The probe uses it for its own workers (a section
// that crashes takes only itself down) and for the programs whose launches section 1 counts.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "preload/trace/status.h"

namespace reprise::probe {

struct Command {
  std::vector<std::string> arguments;                            // the first is the path of the program
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours; an empty value removes the variable
  double seconds = 60;
  double grace_seconds = 5;  // from SIGTERM to SIGKILL: more than what the program itself runs gets
};

struct Outcome {
  int exit_code = -1;  // 128 + signal when a signal ended it
  bool timed_out = false;
  std::string output;
  std::string error_output;  // the last 64 KiB
};

// Blocks until the program has ended. After `seconds`, or when the user interrupts, the program's process group gets
// SIGTERM, and SIGKILL after the grace. io_error: it could not be started.
Result<Outcome> run_command(const Command& command);

// The last line of what a program said that is not empty; for notes.
std::string last_line(const std::string& text);

// The absolute path of this program, and of a file beside it or beside its folder ("../lib/x").
std::string own_path();
std::string beside_program(const std::string& relative);
// Where PATH finds a program; empty when it does not.
std::string find_program(const std::string& name);

}  // namespace reprise::probe

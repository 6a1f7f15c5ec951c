// Which executable will run: looked up as the shell does, through "#!" lines, to compare it with a plan's program.
// Callers: run, replay and session, before anything starts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "preload/trace/status.h"
#include "tools/cli/command.h"

namespace reprise::tools {

// Absolute path of the file that `name` starts (PATH is searched when it has no slash).
Result<std::string> find_program(const std::string& name);

// Why the program cannot be run: none given, not found, not executable.
Status check_program(const ProgramArguments& program);

// Identity of the executable that the kernel will load: the interpreter's for a script. 0 when that cannot be told in
// advance, as for a shell script or for a program whose job is to start another one (env, timeout, numactl).
uint64_t identity_of_program(const std::vector<std::string>& arguments);

// File name for messages and report names: "train.py" for "python train.py", else the program's own.
std::string short_name(const std::vector<std::string>& arguments);

}  // namespace reprise::tools

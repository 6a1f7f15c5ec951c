// `reprise run --defragment`: the program with its large allocations stitched together, and one line at the end about
// what that saved. Called by run.
#pragma once
#include <string>

#include "tools/cli/command.h"
#include "tools/launch/session.h"

namespace reprise::tools {

// Runs the program and returns the exit code to end with.
int run_defragmented(SessionOptions& options, const ProgramArguments& program);

// The line for people, of one line of the run log; empty when it is not one of this mode.
std::string defragment_summary(const std::string& line);

}  // namespace reprise::tools

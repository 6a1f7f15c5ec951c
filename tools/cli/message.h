// How the command line speaks: one line on stderr, "reprise: what: why; what to do", and an exit code. Called by every
// command; results go to stdout, never through here.
#pragma once
#include <string>
#include <string_view>

#include "preload/trace/status.h"

namespace reprise::tools {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Prints the line and returns the exit code: kExitUsage for an invalid argument, kExitFailure otherwise.
int fail(const Status& status);
int fail_usage(std::string_view what);
void say(std::string_view line);

}  // namespace reprise::tools

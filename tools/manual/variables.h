// The environment variables of all parts, from their tables. Callers: `reprise help environment`, the man page, and
// main, which names variables that do not exist.
#pragma once
#include <string>
#include <vector>

#include "tools/manual/manual.h"

namespace reprise::tools {

struct VariableGroup {
  const char* title;
  std::vector<VariableText> variables;
};
// Those that programs read; the build's and the tests' are not among them.
std::vector<VariableGroup> all_variables();

// A line on stderr for each variable of this process that begins with REPRISE_ and is read by nothing.
void say_unknown_variables();

}  // namespace reprise::tools

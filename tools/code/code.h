// `reprise code`, which stands apart from the other commands: what it prints is longer than what it does. Caller: the
// commands' table.
#pragma once
#include "tools/cli/command.h"

namespace reprise::tools {

Action declare_code(CLI::App& app, const ProgramArguments& program);

}  // namespace reprise::tools

// The command line `reprise`: tools/commands has a file for each command, and the table of them.
#include "tools/cli/files.h"
#include "tools/commands/command_line.h"
#include "tools/manual/variables.h"

int main(int argc, char** argv) {
  reprise::tools::keep_standard_numbers();
  reprise::tools::fail_beyond_file_limit();
  reprise::tools::say_unknown_variables();
  reprise::tools::CommandLine line;
  int exit_code = 0;
  const reprise::tools::Action action = line.read(argc, argv, &exit_code);
  if (action) exit_code = action();
  return reprise::tools::finish_stdout(exit_code);
}

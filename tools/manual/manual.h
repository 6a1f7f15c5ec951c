// Man pages and completions, made of the command line's own description. Callers: `reprise help --man` and
// `--completion`, and the build, which installs what they print.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "tools/manual/describe.h"

namespace reprise::tools {

// A variable of the environment, as `reprise help environment` has it.
struct VariableText {
  std::string name;
  std::string values;
  std::string standard;
  std::string help;
};

// [("reprise.1", page), ("reprise-run.1", page), ...]
using Pages = std::vector<std::pair<std::string, std::string>>;
Pages man_pages(const CommandText& root, const std::vector<VariableText>& variables);

// Scripts to be sourced, or put where the shell looks for them.
std::string bash_completion(const CommandText& root);
std::string zsh_completion(const CommandText& root);

}  // namespace reprise::tools

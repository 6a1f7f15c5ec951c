#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/manual/manual.h"

namespace reprise::tools {
namespace {

std::vector<std::string> option_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const OptionText& option : command.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names(const CommandText& command) {
  std::vector<std::string> names;
  for (const CommandText& one : command.commands) names.push_back(one.name);
  return names;
}

// What stands for a command in the scripts: "run", "workload gpt".
template <typename Visit>
void visit_all(const CommandText& command, const std::string& called, Visit visit) {
  visit(command, called);
  for (const CommandText& one : command.commands) {
    visit_all(one, called.empty() ? one.name : called + " " + one.name, visit);
  }
}

// Choices of a positional argument: those of `help` are the commands.
std::vector<std::string> words_of(const CommandText& command) {
  std::vector<std::string> words = command_names(command);
  for (const OptionText& option : command.options) {
    if (option.positional) words.insert(words.end(), option.choices.begin(), option.choices.end());
  }
  return words;
}

// A machine may be a file, too.
bool names_file(const OptionText& option) {
  return option.value == "FILE" || option.value == "FOLDER" || option.value == "MACHINE";
}

bool takes_files(const CommandText& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionText& option) { return option.positional && names_file(option); });
}

std::string bash_case(const CommandText& command, const std::string& called) {
  std::string values;
  for (const OptionText& option : command.options) {
    if (option.flag || option.positional) continue;
    const std::string words =
        option.choices.empty() ? std::string() : fmt::format("words=\"{}\"; ", fmt::join(option.choices, " "));
    values += fmt::format("        {}) {}{}value=1 ;;\n", fmt::join(option.names, "|"), words,
                          names_file(option) ? "files=1; " : "");
  }
  const std::string cases = values.empty() ? "" : fmt::format("      case \"$previous\" in\n{}      esac\n", values);
  const std::vector<std::string> words = words_of(command);
  return fmt::format("    \"{}\")\n{}      [ -n \"$value\" ] || {{ words=\"{}\"; options=\"{}\"; {}}}\n      ;;\n",
                     called, cases, fmt::join(words, " "), fmt::join(option_names(command), " "),
                     takes_files(command) ? "files=1; " : "");
}

// For zsh: what stands in '...' and in [...] of a specification.
std::string zsh_quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      result += '\\';
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string zsh_value(const OptionText& option) {
  const std::string what = zsh_quoted(option.positional ? option.names[0] : option.value);
  if (!option.choices.empty()) return fmt::format(":{}:({})", what, fmt::join(option.choices, " "));
  return fmt::format(":{}:{}", what, names_file(option) ? "_files" : " ");
}

std::string zsh_option(const OptionText& option) {
  if (option.positional) return fmt::format(" \\\n        '*{}'", zsh_value(option));
  std::string text;
  for (const std::string& name : option.names) {
    text += fmt::format(" \\\n        '{}[{}]{}'", name, zsh_quoted(option.help), option.flag ? "" : zsh_value(option));
  }
  return text;
}

std::string zsh_commands(const CommandText& command) {
  std::string text;
  for (const CommandText& one : command.commands) {
    text += fmt::format(" \\\n          '{}:{}'", one.name, zsh_quoted(one.help));
  }
  return fmt::format("      local -a names=({})\n      _describe command names\n", text);
}

std::string zsh_case(const CommandText& command, const std::string& called) {
  std::string options;
  for (const OptionText& option : command.options) options += zsh_option(option);
  const std::string arguments = options.empty() ? "" : fmt::format("      _arguments{}\n", options);
  return fmt::format("    '{}')\n{}{}      ;;\n", called, arguments,
                     command.commands.empty() ? "" : zsh_commands(command));
}

// The words before the current one that are commands, as "run" or "workload gpt"; both shells have this loop.
constexpr const char* kBashHead = R"(# Completion of reprise for bash; made by `reprise help --completion bash`.
_reprise() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local called="" words="" options="" files="" value="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ "${COMP_WORDS[i]}" = "--" ]; then
      if declare -F _command_offset >/dev/null; then _command_offset $((i + 1)); else COMPREPLY=($(compgen -c -- "$current")); fi
      return
    fi
    case "$called/${COMP_WORDS[i]}" in
)";
constexpr const char* kBashMiddle = R"(    esac
  done
  case "$called" in
)";
constexpr const char* kBashTail = R"(  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current"))
       [ -z "$files" ] || COMPREPLY+=($(compgen -f -- "$current")) ;;
  esac
}
complete -o filenames -F _reprise reprise
)";

constexpr const char* kZshHead = R"(#compdef reprise
# Completion of reprise for zsh; made by `reprise help --completion zsh`.
_reprise() {
  local called="" before="" i
  local -i commands=0
  for ((i = 2; i < CURRENT; i++)); do
    if [[ "$words[i]" == "--" ]]; then
      shift $i words
      (( CURRENT -= i ))
      _normal
      return
    fi
    case "$called/$words[i]" in
)";
// _arguments takes the first word for the command, and all others for what it has specifications of.
constexpr const char* kZshMiddle = R"(    esac
    [[ "$called" == "$before" ]] || commands=$((i - 1))
    before="$called"
  done
  shift $commands words
  (( CURRENT -= commands ))
  case "$called" in
)";
constexpr const char* kZshTail = R"(  esac
}
if [ "$funcstack[1]" = "_reprise" ]; then _reprise "$@"; else compdef _reprise reprise; fi
)";

std::string steps(const CommandText& root) {
  std::string text;
  visit_all(root, "", [&](const CommandText& command, const std::string& called) {
    for (const CommandText& one : command.commands) {
      text += fmt::format("      \"{}/{}\") called=\"{}{}\" ;;\n", called, one.name, called.empty() ? "" : called + " ",
                          one.name);
    }
  });
  return text;
}

template <typename Case>
std::string cases(const CommandText& root, Case one) {
  std::string text;
  visit_all(root, "", [&](const CommandText& command, const std::string& called) { text += one(command, called); });
  return text;
}

}  // namespace

std::string bash_completion(const CommandText& root) {
  return kBashHead + steps(root) + kBashMiddle + cases(root, bash_case) + kBashTail;
}

std::string zsh_completion(const CommandText& root) {
  return kZshHead + steps(root) + kZshMiddle + cases(root, zsh_case) + kZshTail;
}

}  // namespace reprise::tools

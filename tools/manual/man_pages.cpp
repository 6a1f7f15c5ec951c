#include <fmt/core.h>

#include "tools/cli/version.h"
#include "tools/manual/manual.h"

namespace reprise::tools {
namespace {

// Text for roff: hyphens as they are typed, no line that begins with a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += "\\&";
      result += c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(toupper(c));
  return text;
}

std::string head(const std::string& name, const std::string& help) {
  return fmt::format(".TH {} 1 \"{}\" \"reprise {}\" \"Reprise\"\n.SH NAME\n{} \\- {}\n", roff(upper(name)),
                     kVersion.date, kVersion.number, roff(name), roff(help));
}

std::string value_text(const OptionText& option) {
  std::string text;
  for (const std::string& choice : option.choices) text += (text.empty() ? "" : "|") + choice;
  return text.empty() ? option.value : text;
}

std::string option_text(const OptionText& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  if (!option.flag && !option.positional) names += fmt::format(" \\fI{}\\fR", roff(value_text(option)));
  std::string notes = option.required ? " Required." : "";
  if (!option.range.empty()) notes += fmt::format(" A number {}.", option.range);
  if (!option.standard.empty()) notes += fmt::format(" Default: {}.", option.standard);
  const bool ended = option.help.empty() || option.help.back() == '.';
  return fmt::format(".TP\n{}\n{}{}{}\n", names, roff(option.help), ended ? "" : ".", roff(notes));
}

std::string options_text(const CommandText& command) {
  std::string arguments;
  std::string options;
  for (const OptionText& option : command.options) (option.positional ? arguments : options) += option_text(option);
  return (arguments.empty() ? "" : ".SH ARGUMENTS\n" + arguments) + (options.empty() ? "" : ".SH OPTIONS\n" + options);
}

std::string synopsis(const std::string& called, const CommandText& command) {
  std::string text = fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIoptions\\fR]", roff(called));
  for (const OptionText& option : command.options) {
    if (!option.positional) continue;
    text += option.required ? fmt::format(" \\fI{}\\fR", roff(option.names[0]))
                            : fmt::format(" [\\fI{}\\fR]", roff(option.names[0]));
  }
  if (!command.commands.empty()) text += " \\fIcommand\\fR ...";
  if (command.runs_program) text += " \\-\\- \\fIprogram\\fR \\fIarguments\\fR...";
  return text + "\n";
}

constexpr const char* kExitStatus =
    ".SH EXIT STATUS\n0 when it worked, 2 for a command line that cannot be understood, 1 for other trouble. A program "
    "under\n"
    "run, record or replay gives its own exit status.\n";

std::string page_of(const CommandText& command) {
  const std::string name = "reprise-" + command.name;
  std::string page = head(name, command.help) + synopsis("reprise " + command.name, command) + options_text(command);
  for (const CommandText& inner : command.commands) {
    page += fmt::format(".SH {}\n{}.\n", roff(upper(inner.name)), roff(inner.help));
    for (const OptionText& option : inner.options) page += option_text(option);
  }
  if (!command.footer.empty()) page += fmt::format(".SH NOTES\n{}\n", roff(command.footer));
  return page + kExitStatus + ".SH SEE ALSO\n\\fBreprise\\fR(1)\n";
}

std::string root_page(const CommandText& root, const std::vector<VariableText>& variables) {
  std::string page = head("reprise", "CUDA and PyTorch programs in less GPU memory than they need");
  page += synopsis("reprise", root) + ".SH DESCRIPTION\n" + roff(root.help) + "\n" + options_text(root);
  page += ".SH COMMANDS\n";
  std::string others;
  for (const CommandText& command : root.commands) {
    page += fmt::format(".TP\n\\fB{}\\fR\n{}.\n", roff(command.name), roff(command.help));
    others += fmt::format("{}\\fBreprise\\-{}\\fR(1)", others.empty() ? "" : ",\n", roff(command.name));
  }
  page += ".SH ENVIRONMENT\n";
  for (const VariableText& one : variables) {
    const std::string standard = one.standard.empty() ? "" : fmt::format(" Default: {}.", one.standard);
    page += fmt::format(".TP\n\\fB{}\\fR (\\fI{}\\fR)\n{}.{}\n", roff(one.name), roff(one.values), roff(one.help),
                        roff(standard));
  }
  return page + kExitStatus + ".SH SEE ALSO\n" + others + "\n";
}

}  // namespace

Pages man_pages(const CommandText& root, const std::vector<VariableText>& variables) {
  Pages pages = {{"reprise.1", root_page(root, variables)}};
  for (const CommandText& command : root.commands)
    pages.emplace_back("reprise-" + command.name + ".1", page_of(command));
  return pages;
}

}  // namespace reprise::tools

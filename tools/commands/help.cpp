// `reprise help`: the commands, the help of one of them, or the environment variables that all parts of Reprise read.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "preload/base/amount.h"
#include "tools/cli/command.h"
#include "tools/cli/message.h"

namespace reprise::tools {
namespace {

struct Variable {
  std::string_view name;
  std::string_view values;
  std::string_view standard;
  std::string_view help;
};

#define REPRISE_VARIABLE(field, name, Field, values, standard, help) {name, values, standard, help},
#define REPRISE_LONE_VARIABLE(name, values, standard, help) {name, values, standard, help},
constexpr Variable kLibrary[] = {
#include "preload/base/variables.def"
};
constexpr Variable kSimulatedDevice[] = {
#include "tools/sim/base/variables.def"
};
constexpr Variable kProbe[] = {
#include "tools/probe/output/variables.def"
};
#undef REPRISE_VARIABLE
#undef REPRISE_LONE_VARIABLE

// "auto|cupti" as "auto, cupti"; the types by what people write for them.
std::string values_of(const Variable& variable) {
  if (variable.values == "bool") return "0 or 1";
  std::string text;
  for (const char letter : variable.values) text += letter == '|' ? std::string(", ") : std::string(1, letter);
  return text;
}

// Help is Markdown, for the page has it, too; a terminal needs no quotes of code.
std::string plain(std::string_view markdown) {
  std::string text(markdown);
  std::erase(text, '`');
  return text;
}

template <size_t count>
void print_variables(const char* title, const Variable (&variables)[count]) {
  fmt::print("{}\n", title);
  for (const Variable& one : variables) {
    const std::string standard = one.standard.empty() ? "" : fmt::format("; default {}", one.standard);
    fmt::print("  {:<28} {}{}\n      {}\n", one.name, values_of(one), standard, plain(one.help));
  }
  fmt::print("\n");
}

int print_environment() {
  print_variables("The preloaded library (reprise run, record and replay set what they need):", kLibrary);
  print_variables("The simulated device (--device sim):", kSimulatedDevice);
  print_variables("reprise-probe and libreprise_count.so:", kProbe);
  std::string units;
  for (const SizeUnit& unit : kSizeUnits) {
    if (!unit.name.empty()) units += fmt::format(" {}", unit.name);
  }
  fmt::print(
      "An amount is plain bytes or has a unit, in either case of letters:{}; or, where the text says of what, %.\n",
      units);
  return 0;
}

int print_help(const CLI::App& root, const std::string& topic) {
  // root.help() would be that of the command that was given, which is this one.
  if (topic.empty()) {
    fmt::print("{}", root.get_formatter()->make_help(&root, root.get_name(), CLI::AppFormatMode::Normal));
    return 0;
  }
  if (topic == "environment") return print_environment();
  for (const CLI::App* command : root.get_subcommands([&](const CLI::App* one) { return one->get_name() == topic; })) {
    fmt::print("{}", command->help(root.get_name()));
    return 0;
  }
  return fail_usage(topic + ": no such command; see 'reprise help'");
}

}  // namespace

Action declare_help(CLI::App& app, const ProgramArguments&) {
  auto topic = std::make_shared<std::string>();
  app.add_option("topic", *topic, "A command, or: environment");
  return [topic, &app] { return print_help(*app.get_parent(), *topic); };
}

}  // namespace reprise::tools

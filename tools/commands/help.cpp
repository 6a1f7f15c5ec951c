// `reprise help`: the commands, the help of one of them, or the environment variables that all parts of Reprise read;
// and what the build installs besides, the man pages and the shells' completions.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "preload/base/amount.h"
#include "preload/trace/nearest.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/options.h"
#include "tools/cli/outputs.h"
#include "tools/manual/manual.h"
#include "tools/manual/variables.h"

namespace reprise::tools {
namespace {

struct HelpOptions {
  std::vector<std::string> topic;
  std::string man;
  std::string completion;
};

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> topics(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : commands_of(app)) names.push_back(one->get_name());
  return names;
}

int print_text(const std::string& text) {
  const Status written = write_file("-", text);
  return written.ok() ? 0 : fail(written);
}

int print_environment() {
  std::string text;
  for (const VariableGroup& group : all_variables()) {
    text += fmt::format("{}\n", group.title);
    for (const VariableText& one : group.variables) {
      const std::string standard = one.standard.empty() ? "" : fmt::format("; default {}", one.standard);
      text += fmt::format("  {:<28} {}{}\n      {}\n", one.name, one.values, standard, one.help);
    }
    text += "\n";
  }
  std::string units;
  for (const SizeUnit& unit : kSizeUnits) {
    if (!unit.name.empty()) units += fmt::format(" {}", unit.name);
  }
  return print_text(
      text +
      fmt::format(
          "A switch is 0, no, off or false; or 1, yes, on or true.\n"
          "An amount is plain bytes or has a unit, in either case of letters:{}; or, where the text says of what, %.\n",
          units));
}

int print_help(const CLI::App& root, const std::vector<std::string>& topic) {
  // root.help() would be that of the command that was given, which is this one.
  if (topic.empty()) {
    return print_text(root.get_formatter()->make_help(&root, root.get_name(), CLI::AppFormatMode::Normal));
  }
  if (topic.front() == "environment") {
    if (topic.size() == 1) return print_environment();
    return fail_usage(topic[1] + ": 'reprise help environment' takes no more words; it prints all variables");
  }
  const CLI::App* command = &root;
  std::string called;
  for (const std::string& word : topic) {
    const auto all = commands_of(*command);
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto* one) { return one->get_name() == word; });
    if (found == all.end()) {
      std::vector<std::string> names = topics(*command);
      if (command == &root) names.emplace_back("environment");
      const std::string meant = did_you_mean(word, names);
      return fail_usage(word + ": no such command" + (meant.empty() ? "; see 'reprise help'" : meant));
    }
    called += (called.empty() ? "" : " ") + command->get_name();
    command = *found;
  }
  return print_text(command->help(called));
}

int write_man_pages(const CommandText& root, const std::string& folder) {
  std::vector<VariableText> variables;
  for (VariableGroup& group : all_variables()) {
    std::move(group.variables.begin(), group.variables.end(), std::back_inserter(variables));
  }
  for (const auto& [name, page] : man_pages(root, variables)) {
    const Status written = write_file(fmt::format("{}/{}", folder, name), page);
    if (!written.ok()) return fail(written);
  }
  return 0;
}

int run_help(const CLI::App& root, const HelpOptions& options) {
  if (!options.man.empty()) return write_man_pages(describe(root), options.man);
  if (options.completion.empty()) return print_help(root, options.topic);
  const CommandText commands = describe(root);
  const Status written =
      write_file("-", options.completion == "zsh" ? zsh_completion(commands) : bash_completion(commands));
  return written.ok() ? 0 : fail(written);
}

}  // namespace

Action declare_help(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<HelpOptions>();
  std::vector<std::string> names = topics(*app.get_parent());
  names.emplace_back("environment");
  name_values(app.add_option("topic", options->topic, "A command, or: environment"), "TOPIC", names)->expected(0, 2);
  app.add_option("--man", options->man, "Write the man pages into this folder")->type_name("FOLDER");
  app.add_option("--completion", options->completion,
                 "Print completion for this shell, as in: source <(reprise help --completion bash)")
      ->check(CLI::IsMember({"bash", "zsh"}));
  return [options, &app] { return run_help(*app.get_parent(), *options); };
}

}  // namespace reprise::tools

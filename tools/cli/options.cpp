#include "tools/cli/options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "preload/trace/nearest.h"

namespace reprise::tools {
namespace {

struct KindOfValue {
  const char* name;  // of an option without its dashes, or of an argument
  const char* kind;
};
constexpr KindOfValue kKindsOfValues[] = {
    {"budget", "SIZE"},       {"host-memory", "SIZE"}, {"fragmentation-limit", "SIZE"},
    {"chunk-bytes", "SIZE"},  {"output", "FILE"},      {"trace", "FILE"},
    {"plan", "FILE"},         {"run-log", "FILE"},     {"csv", "FILE"},
    {"html", "FILE"},         {"status", "FILE"},      {"input", "FILE"},
    {"file", "FILE"},         {"files", "FILE"},       {"facts", "FOLDER"},
    {"folder", "FOLDER"},     {"examine", "SECONDS"},  {"kernel", "NAME"},
    {"window", "FIRST:COUNT"}};

// The innermost command that was given: "reprise workload gpt".
const CLI::App& innermost(const CLI::App& root, std::string& called) {
  const CLI::App* app = &root;
  called = root.get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    called += " " + app->get_name();
  }
  return *app;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(one->get_name());
  return names;
}

// "The following arguments were not expected: 5G --bugdet": the option, behind which words are its values; else the
// first word.
std::string unexpected_word(const CLI::ParseError& error) {
  const std::string text = error.what();
  const size_t colon = text.find("expected: ");
  const std::vector<std::string> words =
      CLI::detail::split(colon == std::string::npos ? text : text.substr(colon + 10), ' ');
  const auto option = std::find_if(words.begin(), words.end(), [](const auto& word) { return word.starts_with("-"); });
  return option != words.end() ? *option : words.front();
}

std::string explain_unexpected(const CLI::App& app, const std::string& called, const std::string& word) {
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("{}: '{}' has no such option{}", name, called, did_you_mean(name, option_names(app)));
  }
  if (const std::vector<std::string> commands = command_names(app); !commands.empty()) {
    return fmt::format("{}: '{}' has no such command{}", word, called, did_you_mean(word, commands));
  }
  const bool runs = app.get_footer().find("-- program") != std::string::npos;
  return fmt::format("{}: not expected{}", word, runs ? "; the program stands behind '--', as in: -- " + word : "");
}

// "--device: tpu not in {gpu,sim}"
std::string explain_choice(const std::string& text) {
  const size_t in = text.find(" not in {");
  const size_t colon = text.find(": ");
  if (in == std::string::npos || colon == std::string::npos || colon > in) return text;
  const std::string word = text.substr(colon + 2, in - colon - 2);
  const std::string list = text.substr(in + 9, text.rfind('}') - in - 9);
  return text + did_you_mean(word, CLI::detail::split(list, ','));
}

}  // namespace

CLI::Option* name_values(CLI::Option* option, const std::string& word, const std::vector<std::string>& names) {
  return option->type_name(fmt::format("{}:{{{}}}", word, fmt::join(names, ",")));
}

void name_kinds_of_values(CLI::App& root) {
  for (const CLI::Option* each : root.get_options()) {
    const auto& names = each->get_lnames();
    const std::string name = names.empty() ? each->get_name(true) : names.front();
    for (const KindOfValue& row : kKindsOfValues) {
      if (name != row.name || each->get_type_name() != "TEXT") continue;
      root.get_option(names.empty() ? name : "--" + name)->type_name(row.kind);
    }
  }
  for (const CLI::App* each : root.get_subcommands([](const CLI::App*) { return true; })) {
    name_kinds_of_values(*root.get_subcommand(each->get_name()));
  }
}

std::string explain(const CLI::App& root, const CLI::ParseError& error) {
  std::string called;
  const CLI::App& app = innermost(root, called);
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const std::string what =
      extra ? explain_unexpected(app, called, unexpected_word(error)) : explain_choice(error.what());
  return what.ends_with("?") ? what : fmt::format("{}; see '{} --help'", what, called);
}

}  // namespace reprise::tools

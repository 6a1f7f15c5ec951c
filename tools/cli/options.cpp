#include "tools/cli/options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "preload/trace/nearest.h"

namespace reprise::tools {
namespace {

struct KindOfValue {
  const char* name;  // of an option without its dashes, or of an argument
  const char* kind;
};
constexpr KindOfValue kKindsOfValues[] = {
    {"budget", "SIZE"},        {"host-memory", "SIZE"}, {"fragmentation-limit", "SIZE"},
    {"chunk-bytes", "SIZE"},   {"output", "FILE"},      {"trace", "FILE"},
    {"plan", "FILE"},          {"run-log", "FILE"},     {"csv", "FILE"},
    {"html", "FILE"},          {"status", "FILE"},      {"input", "FILE"},
    {"file", "FILE"},          {"files", "FILE"},       {"facts", "FOLDER"},
    {"folder", "FOLDER"},      {"examine", "SECONDS"},  {"kernel", "NAME"},
    {"window", "FIRST:COUNT"}, {"save-plan", "FILE"},   {"noise", "PERCENT"},
    {"regime", "TIME"},        {"dispatch", "ORDER"}};

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

// Without their dashes, which are no letters that somebody could mistake.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back(name);
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

bool runs_a_program(const CLI::App& app) { return app.get_footer().find("-- program") != std::string::npos; }

// What looks like none of ours is one of the program's.
std::string which_was_meant(const CLI::App& app, const std::string& option, const std::string& program) {
  const size_t dashes = std::min(option.find_first_not_of('-'), option.size());
  const std::string meant = nearest(std::string_view(option).substr(dashes), option_names(app));
  if (!meant.empty()) return "; did you mean --" + meant + "?";
  if (program.empty() || !runs_a_program(app)) return "";
  return fmt::format("; the program's options stand behind it: -- {} {} ...", program, option);
}

// `program`: what stands behind "--".
std::string explain_unexpected(const CLI::App& app, const std::string& called, const std::string& word,
                               const std::string& program = "") {
  if (word.starts_with("-")) {
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("{}: '{}' has no such option{}", name, called, which_was_meant(app, name, program));
  }
  if (const std::vector<std::string> commands = command_names(app); !commands.empty()) {
    return fmt::format("{}: '{}' has no such command{}", word, called, did_you_mean(word, commands));
  }
  return fmt::format("{}: not expected{}", word,
                     runs_a_program(app) ? "; the program stands behind '--', as in: -- " + word : "");
}

// The first word from that one on that is no option of the command's and no option's value: the program, or a misspelt
// option. argc: there is none.
int first_unexpected(const CLI::App& app, int argc, const char* const* argv, int from) {
  for (int i = from; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_short = word.starts_with("-") && !word.starts_with("--");
    const std::string name = is_short ? word.substr(0, 2) : word.substr(0, word.find('='));
    const CLI::Option* const option = word.starts_with("-") ? app.get_option_no_throw(name) : nullptr;
    if (option == nullptr) return i;
    if (option->get_items_expected_max() > 0 && name == word) ++i;  // its value is the next word
  }
  return argc;
}

// Returns the first option that the command does not have; empty: it has all.
std::string unknown_option(const CLI::App& app, int argc, const char* const* argv) {
  for (int i = first_unexpected(app, argc, argv, 2); i < argc; i = first_unexpected(app, argc, argv, i + 1)) {
    std::string word = argv[i];
    if (word.size() > 1 && word.starts_with("-") && word.find_first_of("0123456789") != 1) return word;
  }
  return {};
}

// As it can be typed into a shell.
std::string typed(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`&|;<>()*?[]#~!{}") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char each : word) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return quoted + "'";
}

std::string with_help(const std::string& what, const std::string& called) {
  return what.ends_with("?") ? what : fmt::format("{}; see '{} --help'", what, called);
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

// "files: At Most 3 required but received 4", "--budget: 1 required SIZE missing"
std::string explain_count(const std::string& text) {
  const std::regex too_many("(.*): At Most ([0-9]+) required but received ([0-9]+)");
  const std::regex none("(.*): [0-9]+ required (\\S+) missing");
  std::smatch found;
  if (std::regex_match(text, found, too_many)) {
    return fmt::format("{}: {} are given, and {} at most can be", found.str(1), found.str(3), found.str(2));
  }
  if (std::regex_match(text, found, none)) return fmt::format("{}: its {} is missing", found.str(1), found.str(2));
  return explain_choice(text);
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
      if (name != row.name || !each->get_type_name().starts_with("TEXT")) continue;
      root.get_option(names.empty() ? name : "--" + name)->type_name(row.kind);
    }
  }
  for (const CLI::App* each : root.get_subcommands([](const CLI::App*) { return true; })) {
    name_kinds_of_values(*root.get_subcommand(each->get_name()));
  }
}

std::string explain_missing_dashes(const CLI::App& root, int argc, const char* const* argv) {
  std::string called;
  const CLI::App& app = innermost(root, called);
  if (!runs_a_program(app)) return {};
  const int program = first_unexpected(app, argc, argv, 2);
  if (program >= argc) return {};
  if (argv[program][0] == '-') return with_help(explain_unexpected(app, called, argv[program]), called);
  std::string command = root.get_name();
  for (int i = 1; i < argc; ++i) command += (i == program ? " -- " : " ") + typed(argv[i]);
  return fmt::format("{}: the program stands behind '--', as in: {}", argv[program], command);
}

std::string explain(const CLI::App& root, const CLI::ParseError& error, int argc, const char* const* argv,
                    const std::string& program) {
  std::string called;
  const CLI::App& app = innermost(root, called);
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // What is there in another spelling is not what is missing.
  const std::string unknown = extra ? unexpected_word(error) : lacks ? unknown_option(app, argc, argv) : "";
  return with_help(unknown.empty() ? explain_count(error.what()) : explain_unexpected(app, called, unknown, program),
                   called);
}

}  // namespace reprise::tools

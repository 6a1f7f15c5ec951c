#include "tools/manual/describe.h"

#include <CLI/CLI.hpp>

namespace reprise::tools {
namespace {

// "TEXT:{gpu,sim}" and "UINT:INT in [1 - 1000]": the kind of value, then what it is checked against.
void read_type(const std::string& type, OptionText& text) {
  const size_t colon = type.find(':');
  text.value = type.substr(0, colon);
  if (colon == std::string::npos) return;
  const std::string check = type.substr(colon + 1);
  if (check.front() == '{' && check.back() == '}') {
    text.choices = CLI::detail::split(check.substr(1, check.size() - 2), ',');
  } else {
    const size_t in = check.find("in [");
    text.range = in == std::string::npos ? check : check.substr(in);
  }
}

OptionText describe(const CLI::Option& option) {
  OptionText text;
  text.positional = option.get_positional();
  if (text.positional) {
    text.names = {option.get_name(true)};
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  text.flag = option.get_items_expected_max() == 0;
  text.required = option.get_required();
  text.help = option.get_description();
  text.standard = option.get_default_str();
  if (!text.flag) read_type(option.get_type_name(), text);
  return text;
}

}  // namespace

CommandText describe(const CLI::App& app) {
  CommandText text;
  text.name = app.get_name();
  text.help = app.get_description();
  text.footer = app.get_footer();
  text.runs_program = text.footer.find("-- program") != std::string::npos;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) text.options.push_back(describe(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) text.commands.push_back(describe(*command));
  }
  return text;
}

}  // namespace reprise::tools

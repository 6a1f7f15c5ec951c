// The command line as it describes itself: what --help prints, as data. Man pages and completions are made of it, so
// that they cannot say anything else. Caller: man_pages, completion.
#pragma once
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace reprise::tools {

struct OptionText {
  std::vector<std::string> names;  // "-o", "--output"; of a positional one: its name alone
  bool positional = false;
  bool flag = false;  // takes no value
  bool required = false;
  std::string value;                 // what to write for the value: TEXT, UINT, FILE
  std::string range;                 // "in [0 - 86400]"
  std::vector<std::string> choices;  // where only some words will do
  std::string standard;              // the default, where it is known
  std::string help;
};

struct CommandText {
  std::string name;
  std::string help;
  std::string footer;
  std::vector<OptionText> options;
  std::vector<CommandText> commands;
  bool runs_program = false;  // "-- program arguments" may follow
};

CommandText describe(const CLI::App& app);

}  // namespace reprise::tools

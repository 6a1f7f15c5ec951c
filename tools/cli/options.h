// What CLI11 leaves to say about options: names that a value may have, and what a mistake probably was. Callers: main,
// the commands.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace reprise::tools {

// Help, man pages and completion show these names; the command itself checks what it was given.
CLI::Option* name_values(CLI::Option* option, const std::string& word, const std::vector<std::string>& names);

// What is to be written for the values of all options, where CLI11 only knows that they are text: SIZE, FILE, FOLDER.
void name_kinds_of_values(CLI::App& root);

// One line for a command line without the "--" before its program: the command as it was meant, or the option that is
// none of the command's. "": neither is the matter.
std::string explain_missing_dashes(const CLI::App& root, int argc, const char* const* argv);

// One line for a command line that could not be read, and what was probably meant. `program`: what stands behind "--".
std::string explain(const CLI::App& root, const CLI::ParseError& error, int argc, const char* const* argv,
                    const std::string& program);

}  // namespace reprise::tools

// Colours where a person reads: on terminals, unless NO_COLOR is set (no-color.org) or the terminal is a dumb one.
// Callers: messages, the doctor, tables.
#pragma once
#include <string>
#include <string_view>

namespace reprise::tools {

enum class Colour { bold, red, yellow, green };

bool has_colours(int file);
// The text as it is where `wanted` is false.
std::string painted(std::string_view text, Colour colour, bool wanted);

}  // namespace reprise::tools

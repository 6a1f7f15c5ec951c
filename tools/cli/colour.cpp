#include "tools/cli/colour.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

namespace reprise::tools {

bool has_colours(int file) {
  const char* const off = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if (off != nullptr && *off != '\0') return false;
  return isatty(file) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

std::string painted(std::string_view text, Colour colour, bool wanted) {
  constexpr int kCodes[] = {1, 31, 33, 32};
  if (!wanted) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(colour)], text);
}

}  // namespace reprise::tools

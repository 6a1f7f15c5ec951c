// How deep lists and objects of a JSON text stand in each other. Callers: readers of texts whose values may be shown as
// they are: nlohmann's dump() calls itself for each level, and runs out of stack at some ten thousand.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

namespace reprise::tools {

inline constexpr size_t kMostJsonDepth = 64;  // nothing of ours has more than a few

inline size_t json_depth(std::string_view text) {
  size_t depth = 0;
  size_t deepest = 0;
  bool quoted = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char sign = text[at];
    if (quoted && sign == '\\') ++at;
    if (sign == '"') quoted = !quoted;
    if (quoted) continue;
    if (sign == '[' || sign == '{') deepest = std::max(deepest, ++depth);
    if ((sign == ']' || sign == '}') && depth > 0) --depth;
  }
  return deepest;
}

}  // namespace reprise::tools

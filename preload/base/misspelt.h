// Variables of the environment that look like ours and are none, and which one was meant. Callers: the launcher, and
// where there is none, the preloaded library and the simulated device, each for its own.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "preload/trace/nearest.h"

namespace reprise {

// Calls say(rest, meant) for each variable that begins with REPRISE_ and is not among `known`, which are whole names.
// `rest` is its name behind the prefix, `meant` that of the known one that is nearest(), by at most `most` letters, or
// "".
template <typename Say>
void for_unknown_variables(const char* const* environment, const std::vector<std::string>& known, size_t most,
                           Say say) {
  constexpr std::string_view prefix = "REPRISE_";
  std::vector<std::string_view> rests;
  rests.reserve(known.size());
  for (const std::string& name : known) rests.push_back(std::string_view(name).substr(prefix.size()));
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    std::string_view name(*environment);
    name = name.substr(0, name.find('='));
    if (!name.starts_with(prefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string rest(name.substr(prefix.size()));
    say(rest, nearest(rest, rests, most));
  }
}

}  // namespace reprise

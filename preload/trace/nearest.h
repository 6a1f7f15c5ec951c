// Which word was meant? For messages about names that do not exist. Callers: the command line, the list of policies.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Letters to insert, remove, replace, or swap with their neighbour.
inline size_t distance_between(std::string_view one, std::string_view other) {
  std::vector<size_t> before(other.size() + 1);
  std::vector<size_t> last(other.size() + 1);
  std::vector<size_t> now(other.size() + 1);
  for (size_t j = 0; j <= other.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= one.size(); ++i) {
    now[0] = i;
    for (size_t j = 1; j <= other.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[other.size()];
}

// The closest of `names`, where it is close: a third of the letters may differ, or one, and `most` of them. "" when
// none is.
template <typename Names>
std::string nearest(std::string_view word, const Names& names, size_t most = 4) {
  std::string best;
  size_t least = std::min(most, std::max<size_t>(word.size() / 3, 1));
  for (const auto& name : names) {
    const size_t distance = distance_between(word, name);
    if (distance > least || (distance == least && !best.empty())) continue;
    least = distance;
    best = name;
  }
  return least < word.size() ? best : std::string();
}

// "; did you mean NAME?", or nothing.
template <typename Names>
std::string did_you_mean(std::string_view word, const Names& names) {
  const std::string name = nearest(word, names);
  return name.empty() ? name : "; did you mean " + name + "?";
}

}  // namespace reprise

#include "analyzer/code/cells.h"

#include <array>

namespace reprise::code {
namespace {

uint32_t word_at(uint32_t place, size_t index) { return (place + 4 * static_cast<uint32_t>(index)) & ~3U; }

}  // namespace

void Cells::put(Key key, ValueId value) {
  const ValueId old = at(key);
  const ValueId joined = values_.join(old, value);
  if (joined == old) return;
  cells_[key] = joined;
  changed_ = true;
}

ValueId Cells::at(Key key) const {
  const auto found = cells_.find(key);
  return found == cells_.end() ? ValueTable::kNothing : found->second;
}

void Cells::store(Space space, std::span<const ValueId> words, bool whole, std::optional<uint32_t> place) {
  for (size_t k = 0; k < words.size(); ++k) {
    const ValueId value = whole ? words[k] : values_.opaque(std::array{words[k]});
    if (place) {
      put({space, word_at(*place, k)}, value);
      continue;
    }
    // One word may be anywhere; of several the first is at an even place.
    if (words.size() == 1 || k % 2 == 0) put({space, kEven}, value);
    if (words.size() == 1 || k % 2 == 1) put({space, kOdd}, value);
  }
}

std::vector<ValueId> Cells::load(Space space, uint32_t count, std::optional<uint32_t> place) const {
  std::vector<ValueId> words;
  if (place) {
    for (uint32_t k = 0; k < count; ++k) {
      const uint32_t word = word_at(*place, k);
      words.push_back(values_.join(at({space, word}), at({space, word / 4 % 2 == 0 ? kEven : kOdd})));
    }
    return words;
  }
  std::array<ValueId, 2> halves{ValueTable::kNothing, ValueTable::kNothing};
  for (const auto& [key, value] : cells_) {
    if (key.first != space) continue;
    const bool odd = key.second < 0 ? key.second == kOdd : key.second / 4 % 2 != 0;
    halves[odd ? 1 : 0] = values_.join(halves[odd ? 1 : 0], value);
  }
  if (count == 1) return {values_.join(halves[0], halves[1])};
  for (uint32_t k = 0; k < count; ++k) words.push_back(halves[k % 2]);
  return words;
}

ValueId Cells::content(Space space) const { return load(space, 1)[0]; }

}  // namespace reprise::code

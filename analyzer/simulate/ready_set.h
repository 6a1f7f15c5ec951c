// A set of small numbers whose least member is found at once: a tree of bits, 64 to a node. What the simulator keeps
// the vertices in that wait for an engine, by priority.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace reprise::analyzer {

class ReadySet {
 public:
  // Members are below `limit`.
  explicit ReadySet(uint32_t limit) {
    size_t words = limit;
    do {
      words = (words + 63) / 64;
      levels_.emplace_back(words, 0);
    } while (words > 1);
  }

  bool empty() const { return levels_.back()[0] == 0; }

  void insert(uint32_t member) {
    for (std::vector<uint64_t>& level : levels_) {
      uint64_t& word = level[member / 64];
      const bool was_empty = word == 0;
      word |= uint64_t{1} << (member % 64);
      if (!was_empty) return;
      member /= 64;
    }
  }

  // Of a set that is not empty.
  uint32_t least() const {
    uint32_t member = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
      member = member * 64 + static_cast<uint32_t>(std::countr_zero(levels_[level][member]));
    }
    return member;
  }

  void erase(uint32_t member) {
    for (std::vector<uint64_t>& level : levels_) {
      uint64_t& word = level[member / 64];
      word &= ~(uint64_t{1} << (member % 64));
      if (word != 0) return;
      member /= 64;
    }
  }

 private:
  std::vector<std::vector<uint64_t>> levels_;  // the members, then which words of the level below are not empty
};

}  // namespace reprise::analyzer

// Numbers grouped by a key, all groups in one array: of large graphs a vector for every tensor or call would be most of
// the memory. Used by placement, tiers and the MemGraph's builder for what belongs to a tensor, a call, a chunk.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reprise::analyzer {

class Groups {
 public:
  Groups() = default;
  // `each` calls what it is given with (group, number) for every pair, and is run twice. Within a group, numbers stand
  // in the order in which they come.
  template <typename Each>
  Groups(size_t groups, Each&& each) {
    assign(groups, each);
  }
  // Other groups in the same memory.
  template <typename Each>
  void assign(size_t groups, Each&& each) {
    begin_.assign(groups + 2, 0);
    each([&](uint32_t group, uint32_t) { ++begin_[group + 2]; });
    for (size_t group = 2; group < begin_.size(); ++group) begin_[group] += begin_[group - 1];
    numbers_.resize(begin_.back());
    each([&](uint32_t group, uint32_t number) { numbers_[begin_[group + 1]++] = number; });
  }

  size_t size() const { return begin_.empty() ? 0 : begin_.size() - 2; }
  std::span<const uint32_t> operator[](size_t group) const {
    return {numbers_.data() + begin_[group], numbers_.data() + begin_[group + 1]};
  }
  std::span<uint32_t> operator[](size_t group) {
    return {numbers_.data() + begin_[group], numbers_.data() + begin_[group + 1]};
  }

 private:
  std::vector<uint32_t> begin_;  // of a group; one more at the end, and one that only the constructor needs
  std::vector<uint32_t> numbers_;
};

}  // namespace reprise::analyzer

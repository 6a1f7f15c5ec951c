// How much room there is at each of many places in a row: the least of a range, and taking from a range, in the
// logarithm of their number. Used by retime.cpp for chunks, by tiers.cpp for host memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::analyzer {

class Room {
 public:
  explicit Room(std::vector<int64_t> room) {
    while (size_ < room.size()) size_ *= 2;
    least_.assign(2 * size_, 0);
    taken_.assign(2 * size_, 0);
    std::copy(room.begin(), room.end(), least_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (size_t i = size_; i-- > 1;) least_[i] = std::min(least_[2 * i], least_[2 * i + 1]);
  }
  void take(size_t begin, size_t end, int64_t amount) { take(1, 0, size_, begin, end, amount); }
  int64_t least(size_t begin, size_t end) const { return least(1, 0, size_, begin, end); }

 private:
  void take(size_t node, size_t low, size_t high, size_t begin, size_t end, int64_t amount) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) {
      least_[node] -= amount;
      taken_[node] += amount;
      return;
    }
    const size_t middle = (low + high) / 2;
    take(2 * node, low, middle, begin, end, amount);
    take(2 * node + 1, middle, high, begin, end, amount);
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]) - taken_[node];
  }
  int64_t least(size_t node, size_t low, size_t high, size_t begin, size_t end) const {
    if (end <= low || high <= begin) return INT64_MAX / 2;
    if (begin <= low && high <= end) return least_[node];
    const size_t middle = (low + high) / 2;
    return std::min(least(2 * node, low, middle, begin, end), least(2 * node + 1, middle, high, begin, end)) -
           taken_[node];
  }

  size_t size_ = 1;
  std::vector<int64_t> least_;
  std::vector<int64_t> taken_;
};

}  // namespace reprise::analyzer

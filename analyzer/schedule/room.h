// How much room there is at each of many places in a row: the least of a range, where there is too little, and taking
// from a range, in the logarithm of their number. Used by retime.cpp for chunks, by tiers.cpp for host memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reprise::analyzer {

class Room {
 public:
  Room() = default;
  explicit Room(std::span<const int64_t> room) { assign(room); }
  // Other room in the same memory.
  void assign(std::span<const int64_t> room) {
    size_ = 2;
    while (size_ < room.size() + 2) size_ *= 2;
    least_.assign(2 * size_, 0);
    taken_.assign(size_, 0);
    std::copy(room.begin(), room.end(), least_.begin() + static_cast<std::ptrdiff_t>(size_ + 1));
    for (size_t i = size_; i-- > 1;) least_[i] = std::min(least_[2 * i], least_[2 * i + 1]);
  }
  void take(size_t begin, size_t end, int64_t amount) {
    if (end <= begin) return;
    const auto of_node = [&](size_t node) {
      least_[node] -= amount;
      if (node < size_) taken_[node] += amount;
    };
    size_t left = size_ + begin;
    size_t right = size_ + end + 1;
    for (; (left ^ right) != 1; left /= 2, right /= 2, update(left), update(right)) {
      if (left % 2 == 0) of_node(left + 1);
      if (right % 2 == 1) of_node(right - 1);
    }
    while ((left /= 2) != 0) update(left);
  }
  // The last place of the range with less than `amount`; nullopt: there is none.
  std::optional<size_t> last_below(size_t begin, size_t end, int64_t amount) const {
    if (end <= begin) return std::nullopt;
    return last_below(1, 0, size_, {begin + 1, end + 1, amount});
  }
  int64_t least(size_t begin, size_t end) const {
    if (end <= begin) return kNoneThere;
    int64_t of_left = kNoneThere;
    int64_t of_right = kNoneThere;
    size_t left = size_ + begin;
    size_t right = size_ + end + 1;
    while ((left ^ right) != 1) {
      if (left % 2 == 0) of_left = std::min(of_left, least_[left + 1]);
      if (right % 2 == 1) of_right = std::min(of_right, least_[right - 1]);
      left /= 2;
      right /= 2;
      of_left -= taken_[left];
      of_right -= taken_[right];
    }
    int64_t least = std::min(of_left, of_right);
    while ((left /= 2) != 0) least -= taken_[left];
    return least;
  }

 private:
  struct Wanted {
    size_t begin, end;  // of leaves
    int64_t below;
  };

  // Among the `count` leaves below the node, of which `first` is the first.
  std::optional<size_t> last_below(size_t node, size_t first, size_t count, Wanted wanted) const {
    if (first >= wanted.end || first + count <= wanted.begin || least_[node] >= wanted.below) return std::nullopt;
    if (count == 1) return first - 1;
    wanted.below += taken_[node];
    const std::optional<size_t> behind = last_below(2 * node + 1, first + count / 2, count / 2, wanted);
    return behind ? behind : last_below(2 * node, first, count / 2, wanted);
  }

  static constexpr int64_t kNoneThere = INT64_MAX / 2;

  void update(size_t node) { least_[node] = std::min(least_[2 * node], least_[2 * node + 1]) - taken_[node]; }

  // Leaves from size_ on, the first and the last one of no place: a range lies between two leaves.
  size_t size_ = 1;
  std::vector<int64_t> least_;  // below the node
  std::vector<int64_t> taken_;  // from all below the node
};

}  // namespace reprise::analyzer

// The times at which a link is busy, for reckoning ahead when it could carry something. Used by tiers.cpp and the
// policy link_aware.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace reprise::analyzer {

class BusyTimes {
 public:
  void clear() { busy_.clear(); }

  // Earliest start >= `from` of a gap of `length`.
  int64_t fit(int64_t from, int64_t length) const {
    int64_t start = from;
    auto next = busy_.upper_bound(start);
    if (next != busy_.begin()) start = std::max(start, std::prev(next)->second);
    for (; next != busy_.end() && next->first < start + length; ++next) start = std::max(start, next->second);
    return start;
  }

  // Latest start of a gap of `length` that ends at `until` or before.
  int64_t fit_before(int64_t until, int64_t length) const {
    int64_t end = until;
    auto next = busy_.lower_bound(end);
    while (next != busy_.begin()) {
      --next;
      if (next->second <= end - length) break;
      end = std::min(end, next->first);
    }
    return end - length;
  }

  // The time must be free. Bookings that touch are merged, or a search would crawl over thousands.
  void book(int64_t start, int64_t length) {
    if (length == 0) return;
    int64_t end = start + length;
    if (const auto next = busy_.find(end); next != busy_.end()) {
      end = next->second;
      busy_.erase(next);
    }
    const auto behind = busy_.lower_bound(start);
    if (behind != busy_.begin() && std::prev(behind)->second == start) {
      std::prev(behind)->second = end;
    } else {
      busy_[start] = end;
    }
  }

 private:
  std::map<int64_t, int64_t> busy_;  // start -> end, disjoint
};

}  // namespace reprise::analyzer

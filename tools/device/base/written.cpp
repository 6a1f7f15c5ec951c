#include "tools/device/base/written.h"

#include <algorithm>
#include <iterator>

namespace reprise::sim {

void WrittenBytes::mark(uint64_t begin, uint64_t end) {
  end = std::min(end, bytes_);
  if (begin >= end || complete()) return;
  const std::lock_guard lock(mutex_);
  add(begin, end);
  settle();
}

void WrittenBytes::mark_all() { mark(0, bytes_); }

void WrittenBytes::copy(uint64_t begin, const WrittenBytes& from, uint64_t from_begin, uint64_t bytes) {
  if (begin >= bytes_ || bytes == 0) return;
  bytes = std::min(bytes, bytes_ - begin);
  const std::vector<Interval> there = from.within(from_begin, from_begin + bytes);
  const std::lock_guard lock(mutex_);
  remove(begin, begin + bytes);
  for (const auto& [first, last] : there) add(first - from_begin + begin, last - from_begin + begin);
  settle();
}

std::vector<WrittenBytes::Interval> WrittenBytes::intervals() const { return within(0, bytes_); }

std::vector<WrittenBytes::Interval> WrittenBytes::within(uint64_t begin, uint64_t end) const {
  const std::lock_guard lock(mutex_);
  std::vector<Interval> found;
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin()) --at;
  for (; at != intervals_.end() && at->first < end; ++at) {
    const Interval part{std::max(at->first, begin), std::min(at->second, end)};
    if (part.first < part.second) found.push_back(part);
  }
  return found;
}

// Joins with what it touches.
void WrittenBytes::add(uint64_t begin, uint64_t end) {
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin() && std::prev(at)->second >= begin) --at;
  while (at != intervals_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = intervals_.erase(at);
  }
  intervals_[begin] = end;
}

void WrittenBytes::remove(uint64_t begin, uint64_t end) {
  auto at = intervals_.upper_bound(begin);
  if (at != intervals_.begin()) --at;
  while (at != intervals_.end() && at->first < end) {
    const auto [first, last] = *at;
    if (last <= begin) {
      ++at;
      continue;
    }
    at = intervals_.erase(at);
    if (first < begin) intervals_[first] = begin;
    if (last > end) intervals_[end] = last;
  }
}

void WrittenBytes::settle() {
  const bool all = intervals_.size() == 1 && intervals_.begin()->first == 0 && intervals_.begin()->second == bytes_;
  complete_.store(all, std::memory_order_release);
}

}  // namespace reprise::sim

#include "analyzer/placement/gap_index.h"

#include <algorithm>
#include <bit>

namespace reprise::analyzer {

GapIndex::GapIndex(const std::vector<uint64_t>& start_ns)
    : start_ns_(start_ns), count_(static_cast<uint32_t>(start_ns.size() - 1)) {
  while (size_ < 2 * count_ + 1) size_ *= 2;
  furthest_.assign(size_t{2} * size_, 0);
  first_.assign(size_t{2} * count_ + 1, kNone);
}

void GapIndex::add(uint32_t group, uint32_t begin, uint32_t end) {
  for_places(begin, end, [&](uint32_t from, uint32_t to) { insert(from, to, group); });
}

void GapIndex::remove(uint32_t group, uint32_t begin, uint32_t end) {
  for_places(begin, end, [&](uint32_t from, uint32_t to) { erase(from, to, group); });
}

void GapIndex::insert(uint32_t begin, uint32_t end, uint32_t group) {
  uint32_t gap = unused_;
  if (gap == kNone) {
    gap = static_cast<uint32_t>(gaps_.size());
    gaps_.emplace_back();
  } else {
    unused_ = gaps_[gap].next;
  }
  uint32_t* at = &first_[begin];
  while (*at != kNone && gaps_[*at].end > end) at = &gaps_[*at].next;
  gaps_[gap] = {end, group, *at};
  *at = gap;
  update(begin);
}

void GapIndex::erase(uint32_t begin, uint32_t end, uint32_t group) {
  uint32_t* at = &first_[begin];
  while (gaps_[*at].group != group || gaps_[*at].end != end) at = &gaps_[*at].next;
  const uint32_t gap = *at;
  *at = gaps_[gap].next;
  gaps_[gap].next = unused_;
  unused_ = gap;
  update(begin);
}

void GapIndex::update(uint32_t begin) {
  uint32_t node = size_ + begin;
  uint32_t furthest = first_[begin] == kNone ? 0 : gaps_[first_[begin]].end;
  while (node > 0 && furthest_[node] != furthest) {
    furthest_[node] = furthest;
    furthest = std::max(furthest, furthest_[node ^ 1]);
    node /= 2;
  }
}

GapSearch::GapSearch(const GapIndex& index, uint32_t begin, uint32_t end)
    : index_(index),
      begin_(index.count_ + begin),
      end_((begin < end ? index.count_ : 2 * index.count_) + end),
      begin_ns_(index.time(begin_)),
      end_ns_(index.time(end_)) {
  push_node(1, 0);
}

// `first`: the first place below the node.
void GapSearch::push_node(uint32_t node, uint32_t first) {
  const uint32_t furthest = index_.furthest_[node];
  if (first > begin_ || furthest < end_) return;
  push({std::min(begin_ns_ - index_.time(first), index_.time(furthest) - end_ns_), node, kNone});
}

void GapSearch::push(const SearchNode& entry) {
  queue_.push_back(entry);
  std::push_heap(queue_.begin(), queue_.end());
}

std::optional<uint32_t> GapSearch::step() {
  std::pop_heap(queue_.begin(), queue_.end());
  const SearchNode entry = queue_.back();
  queue_.pop_back();
  if (entry.node < index_.size_) {
    const auto level = static_cast<uint32_t>(std::bit_width(index_.size_) - std::bit_width(entry.node));
    const uint32_t first = (entry.node << level) - index_.size_;  // the first place below it
    push_node(2 * entry.node, first);
    push_node(2 * entry.node + 1, first + (1u << (level - 1)));
    return std::nullopt;
  }
  const uint32_t place = entry.node - index_.size_;
  const GapIndex::FreeTime& gap = index_.gaps_[entry.gap == kNone ? index_.first_[place] : entry.gap];
  if (gap.next != kNone && index_.gaps_[gap.next].end >= end_) {
    const uint64_t behind = index_.time(index_.gaps_[gap.next].end) - end_ns_;
    push({std::min(begin_ns_ - index_.time(place), behind), entry.node, gap.next});
  }
  return gap.group;
}

}  // namespace reprise::analyzer

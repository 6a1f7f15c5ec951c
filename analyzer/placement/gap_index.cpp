#include "analyzer/placement/gap_index.h"

#include <algorithm>
#include <bit>
#include <utility>

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

void GapSearch::start(const GapIndex& index, uint32_t begin, uint32_t end) {
  index_ = &index;
  begin_ = index.count_ + begin;
  end_ = (begin < end ? index.count_ : 2 * index.count_) + end;
  begin_ns_ = index.time(begin_);
  end_ns_ = index.time(end_);
  queue_.clear();
  go_on(node_at(1, 0));
}

// `first`: the first place below the node. nullopt: nothing below it is free during the span.
std::optional<GapSearch::SearchNode> GapSearch::node_at(uint32_t node, uint32_t first) const {
  const uint32_t furthest = index_->furthest_[node];
  if (first > begin_ || furthest < end_) return std::nullopt;
  return SearchNode{std::min(begin_ns_ - index_->time(first), index_->time(furthest) - end_ns_), node, kNone};
}

void GapSearch::put_aside(const SearchNode& entry) {
  queue_.push_back(entry);
  std::push_heap(queue_.begin(), queue_.end());
}

// With the best of the queue and of this entry. On the way down the tree that is mostly the entry.
void GapSearch::go_on(const std::optional<SearchNode>& entry) {
  is_over_ = !entry && queue_.empty();
  if (is_over_) return;
  if (entry && (queue_.empty() || !(*entry < queue_.front()))) {
    best_ = *entry;
    return;
  }
  std::pop_heap(queue_.begin(), queue_.end());
  best_ = queue_.back();
  queue_.pop_back();
  if (entry) put_aside(*entry);
}

std::optional<uint32_t> GapSearch::step() {
  const SearchNode entry = best_;
  const GapIndex& index = *index_;
  if (entry.node < index.size_) {
    const auto level = static_cast<uint32_t>(std::bit_width(index.size_) - std::bit_width(entry.node));
    const uint32_t first = (entry.node << level) - index.size_;  // the first place below it
    std::optional<SearchNode> better = node_at(2 * entry.node, first);
    std::optional<SearchNode> other = node_at(2 * entry.node + 1, first + (1u << (level - 1)));
    if (!better || (other && *better < *other)) std::swap(better, other);
    if (other) put_aside(*other);
    go_on(better);
    return std::nullopt;
  }
  const uint32_t place = entry.node - index.size_;
  const GapIndex::FreeTime& gap = index.gaps_[entry.gap == kNone ? index.first_[place] : entry.gap];
  if (gap.next != kNone && index.gaps_[gap.next].end >= end_) {
    const uint64_t behind = index.time(index.gaps_[gap.next].end) - end_ns_;
    go_on(SearchNode{std::min(begin_ns_ - index.time(place), behind), entry.node, gap.next});
  } else {
    go_on(std::nullopt);
  }
  return gap.group;
}

}  // namespace reprise::analyzer

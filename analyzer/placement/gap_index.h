// The free times of groups of chunks, and the search for those that reach furthest to both sides of a given time: a
// tree over where free times begin that knows the furthest end below every node. The iteration is a circle. Used by
// pool.cpp only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/base/ids.h"

namespace reprise::analyzer {

class GapIndex {
 public:
  // `start_ns`: as for HomePool; it must outlive the index.
  explicit GapIndex(const std::vector<uint64_t>& start_ns);

  // A time that is free, in call positions; one with end <= begin goes over the iteration's start. Not empty.
  void add(uint32_t group, uint32_t begin, uint32_t end);
  void remove(uint32_t group, uint32_t begin, uint32_t end);

 private:
  friend class GapSearch;
  // Places on the line of three iterations, ours in the middle: a gap over the start stands there twice.
  struct FreeTime {
    uint32_t end = 0;
    uint32_t group = 0;
    uint32_t next = kNone;  // with the same beginning and no later end
  };
  template <typename Visit>
  void for_places(uint32_t begin, uint32_t end, Visit&& visit) const {
    if (begin < end) {
      visit(count_ + begin, count_ + end);
      return;
    }
    if (begin < count_) visit(count_ + begin, 2 * count_ + end);
    if (end > 0) visit(begin, count_ + end);
  }
  void insert(uint32_t begin, uint32_t end, uint32_t group);
  void erase(uint32_t begin, uint32_t end, uint32_t group);
  void update(uint32_t begin);
  uint64_t time(uint32_t place) const {
    if (place < count_) return start_ns_[place];
    if (place <= 2 * count_) return start_ns_[place - count_] + start_ns_.back();
    return start_ns_[place - 2 * count_] + 2 * start_ns_.back();
  }

  const std::vector<uint64_t>& start_ns_;
  uint32_t count_;                  // calls
  uint32_t size_ = 1;               // leaves of the tree
  std::vector<uint32_t> furthest_;  // node -> latest end of the gaps below it; 0: none
  std::vector<uint32_t> first_;     // place -> its gap with the latest end
  std::vector<FreeTime> gaps_;
  uint32_t unused_ = kNone;  // list of gaps that are none
};

// The groups that are free during one span, those with the widest slack first.
class GapSearch {
 public:
  // From the beginning. `end` <= `begin`: over the iteration's start.
  void start(const GapIndex& index, uint32_t begin, uint32_t end);

  bool is_over() const { return is_over_; }
  // No group that is still to come has more.
  uint64_t bound() const { return best_.slack; }
  // One step on, which may or may not find a group. Not when it is over.
  std::optional<uint32_t> step();

 private:
  struct SearchNode {
    uint64_t slack = 0;
    uint32_t node = 0;
    uint32_t gap = kNone;  // kNone: a node's bound
    bool operator<(const SearchNode& other) const { return slack < other.slack; }
  };
  std::optional<SearchNode> node_at(uint32_t node, uint32_t first) const;
  void put_aside(const SearchNode& entry);
  void go_on(const std::optional<SearchNode>& entry);

  const GapIndex* index_ = nullptr;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
  uint64_t begin_ns_ = 0;
  uint64_t end_ns_ = 0;
  bool is_over_ = true;
  SearchNode best_;                // the next one
  std::vector<SearchNode> queue_;  // heap of the others
};

}  // namespace reprise::analyzer

// Chunks grouped by equal occupation, and the search for the best ones for a set of intervals. Used by layout.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::analyzer {

// Half open, in call positions, inside one iteration: a stay that wraps is two spans.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class ChunkPool {
 public:
  // `start_ns`: time of each call position, strictly rising, one more at the end; slack between spans is measured in
  // it.
  ChunkPool(uint32_t chunks, const std::vector<uint64_t>& start_ns);

  // Takes `count` chunks that are free during all of `spans` (sorted, disjoint), those with the widest slack first;
  // equal slack: the lowest numbers. nullopt, and nothing is taken, when there are too few.
  std::optional<std::vector<uint32_t>> take(uint32_t count, const std::vector<Span>& spans);
  // Takes exactly these chunks if all of them are free during `spans`.
  bool take_these(const std::vector<uint32_t>& chunks, const std::vector<Span>& spans);

 private:
  struct Group {
    std::vector<uint32_t> chunks;
    std::vector<Span> busy;  // sorted, disjoint
  };
  // Least distance to a neighbour in time, the iteration being a circle; nullopt: not free.
  std::optional<uint64_t> slack(const Group& group, const std::vector<Span>& spans) const;
  void occupy(Group& group, const std::vector<Span>& spans);
  uint64_t distance(uint32_t from, uint32_t to) const;

  std::vector<uint64_t> start_ns_;
  std::vector<Group> groups_;
};

}  // namespace reprise::analyzer

// Chunks grouped by equal occupation, and the search for the best ones for a set of intervals. Used by layout.cpp.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyzer/placement/gap_index.h"

namespace reprise::analyzer {

// Half open, in call positions, inside one iteration: a stay that wraps is two spans.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class HomePool {
 public:
  // `start_ns`: time of each call position, strictly rising, one more at the end; slack between spans is measured in
  // it. It must outlive the pool. `steps`: of the search, besides a few for each take().
  HomePool(uint32_t chunks, const std::vector<uint64_t>& start_ns, uint64_t steps = kSteps);

  // Takes `count` chunks that are free during all of `spans` (sorted, disjoint), those with the widest slack first;
  // equal slack: the lowest numbers. nullopt, and nothing is taken, when there are too few. Once the steps are used up,
  // the slack is that of the best of those that few steps find.
  std::optional<std::vector<uint32_t>> take(uint32_t count, std::span<const Span> spans);
  // Takes exactly these chunks (ascending) if all of them are free during `spans`.
  bool take_these(const std::vector<uint32_t>& chunks, std::span<const Span> spans);

  static constexpr uint64_t kSteps = uint64_t{1} << 18;

 private:
  struct Group {
    uint32_t first = kNone;  // lowest chunk; the others follow by next_
    uint32_t count = 0;
    std::vector<Span> busy;  // sorted, disjoint
  };
  struct Rated {
    uint64_t slack;
    uint32_t group;
  };
  bool is_worse(const Rated& a, const Rated& b) const;
  // What take() needs while it runs; memory that is kept from one to the next, and not copied.
  struct Scratch {
    Scratch() = default;
    Scratch(const Scratch& /*other*/) {}
    Scratch& operator=(const Scratch&) = delete;

    std::vector<GapSearch> searches;
    std::vector<Rated> rated;       // heap
    std::vector<uint32_t> chosen;   // groups
    std::vector<uint32_t> touched;  // groups
  };
  void find(uint32_t count, std::span<const Span> spans);
  std::span<GapSearch> searches(std::span<const Span> spans);
  std::optional<uint64_t> slack(const Group& group, std::span<const Span> spans) const;
  uint64_t distance(uint32_t from, uint32_t to) const;
  void occupy(uint32_t group, std::span<const Span> spans);
  void occupy(uint32_t group, const Span& span);
  uint32_t split(uint32_t group, uint32_t count);
  uint32_t copy_of(uint32_t group);

  const std::vector<uint64_t>& start_ns_;
  uint64_t steps_;
  std::vector<Group> groups_;
  std::vector<uint32_t> next_;      // chunk -> the next one of its group
  std::vector<uint32_t> group_of_;  // by chunk
  uint32_t fresh_ = kNone;          // the group that no tensor has taken yet
  GapIndex gaps_;                   // of all other groups
  std::vector<uint32_t> seen_;      // group -> the search that has rated it
  uint32_t search_ = 0;
  Scratch scratch_;
};

}  // namespace reprise::analyzer

// Where the program's tensors would be if everything fitted. Each range that the program has had, and each block of
// small tensors, has a home: as many places as it takes chunks. No two live ones share a place, and there are never
// more places than the most chunks that lived at once. So a freed range whose places are all free can be allocated
// again with the chunks that it is still mapped onto. Pure bookkeeping, in the order of the program's calls; caller:
// Addresses.
//
//     places    1   2   3   4   5
//     A         x   x                freed: with it, B is freed, too
//     B             x   x            freed
//     C                     x   x    live
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace reprise::replay {

using Place = uint32_t;  // from 1 on

class Homes {
 public:
  // Homes have at most `most` places in all, as far as live ones need no more.
  void reset(uint64_t most);
  // Not everything fits: nothing has a home from now on.
  void stop() noexcept;
  bool kept() const noexcept { return kept_; }

  // nullptr: it has none.
  const std::vector<Place>* of(uint64_t base) const noexcept;
  // It has a home of which nothing is taken.
  bool is_free(uint64_t base) const noexcept;
  // A count, when the home was taken last.
  uint64_t last_taken(uint64_t base) const noexcept;
  // Places that are taken.
  uint64_t taken() const noexcept { return taken_; }
  // Would a further home of so many places be one too many?
  bool is_crowded(uint64_t count) const noexcept;

  // Takes a home that is free.
  void take(uint64_t base) noexcept;
  // Gives a freed range another home, of the places that have been free for longest, and takes it.
  void settle(uint64_t base, uint64_t count);
  void leave(uint64_t base) noexcept;
  // Homes of freed ranges are no more.
  void forget_freed() noexcept;

 private:
  static constexpr uint64_t kMostHomes = 16;  // that a place belongs to, on average

  struct Home {
    std::vector<Place> places;
    uint64_t taken = 0;
    bool live = false;
  };
  // Free places follow each other as they were freed, in a ring that begins and ends with number 0.
  struct PlaceLink {
    Place before = 0;
    Place after = 0;
    bool free = true;
  };
  void unlink(Place place) noexcept;

  bool kept_ = false;
  std::unordered_map<uint64_t, Home> homes_;
  std::vector<PlaceLink> links_;
  uint64_t taken_ = 0;
  uint64_t held_ = 0;  // places of all homes
  uint64_t most_ = 0;
  uint64_t count_ = 0;
};

}  // namespace reprise::replay

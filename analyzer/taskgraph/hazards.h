// Which earlier accesses must an access wait for: read after write, write after read, write after write, per byte
// range. Used to build the TaskGraph's edges and, with transfers spliced in, those of the MemGraph.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reprise::analyzer {

// A vertex in one of several consecutive iterations.
struct Stamp {
  uint32_t vertex = 0;
  uint32_t round = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
  auto operator<=>(const Stamp&) const = default;
};

// The history of one resource: bytes of a tensor, of its host copy, or of the slab.
class Hazards {
 public:
  // Appends to `before` what an access to [begin, end) must wait for, and records it. A stamp never waits for itself.
  void access(uint64_t begin, uint64_t end, bool writes, Stamp stamp, std::vector<Stamp>& before);
  // Appends what a write to everything would have to wait for.
  void frontier(std::vector<Stamp>& stamps) const;
  void forget() { segments_.clear(); }

 private:
  struct Segment {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool written = false;
    Stamp writer;
    std::vector<Stamp> readers;  // since the write
  };
  static void wait_for(const Segment& segment, bool writes, Stamp stamp, std::vector<Stamp>& before);
  size_t behind(uint64_t position) const;
  void split_at(uint64_t position);
  void overwrite(std::vector<Segment>::iterator first, std::vector<Segment>::iterator last, Segment segment);
  std::vector<Segment> segments_;  // sorted, disjoint; bytes never accessed are in none
};

}  // namespace reprise::analyzer

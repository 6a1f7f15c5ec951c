// Virtual addresses of managed allocations: which part of the arena belongs to whom. Pure bookkeeping, no driver calls.
// Caller: the enforcer, under its submission lock (allocate), and the dispatcher through it (release).
//
// The arena has three zones: slabs of small allocations, ranges of large ones, and addresses that only a plan hands
// out, so that what is allocated in passive mode never collides with a plan's tensors.
#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace reprise::replay {

struct Zone {
  uint64_t base = 0;
  uint64_t bytes = 0;
  bool contains(uint64_t address) const noexcept { return address - base < bytes; }
};

struct Arena {
  Zone slabs;
  Zone ranges;
  Zone plan;
};

// Cuts [base, base + bytes) into the zones; all bounds are multiples of `unit`.
Arena cut_arena(uint64_t base, uint64_t bytes, uint64_t chunk_bytes) noexcept;

// Ranges in one zone. A range that was released is handed out again for the same size first, newest first: its mapping
// is then still there and costs nothing.
class Ranges {
 public:
  void reset(Zone zone, uint64_t chunk_bytes) noexcept;

  // A range of at least `bytes`, padded to units, followed by one unit that nobody gets (one-past-end pointers resolve
  // to nothing). 0 when the zone is full.
  uint64_t allocate(uint64_t bytes) noexcept;
  // `bytes` as in allocate().
  void release(uint64_t base, uint64_t bytes) noexcept;

  uint64_t padded(uint64_t bytes) const noexcept { return (bytes + chunk_bytes_ - 1) / chunk_bytes_ * chunk_bytes_; }

 private:
  uint64_t take_bumped(uint64_t total) noexcept;
  uint64_t take_merged(uint64_t total) noexcept;

  Zone zone_;
  uint64_t chunk_bytes_ = 1;
  uint64_t next_ = 0;                                         // offset of what was never handed out
  std::unordered_map<uint64_t, std::vector<uint64_t>> bins_;  // total size -> bases, newest last
};

}  // namespace reprise::replay

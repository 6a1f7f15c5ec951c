// Virtual addresses of managed allocations. Pure bookkeeping, no driver calls. Callers: the session allocates and
// releases, and so does the dispatcher what a plan has had.
//
// The arena is reserved once. Its zones never overlap, so that what is allocated on demand cannot collide with a plan's
// tensors. Within a zone of ranges every range ends with a guard chunk that is never mapped: a pointer one past the end
// of an allocation is in no allocation.
//
//     base             + 1/8                       + 4/8                                end
//      |     slabs      |           plan            |               ranges               |
//      | small blocks:  | a plan's own tensors: its | large allocations, made on demand: |
//      | Slab           | slab region, then ranges  | Ranges                             |
//                                                   |
//                                                   | tensor A | guard | tensor B | guard | free ...
//                                                   | 3 chunks | 1     | 4 chunks | 1     |
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "preload/footprint/footprint.h"
#include "preload/footprint/slab.h"
#include "replay/memory/addresses/homes.h"

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

// Cuts [base, base + bytes) into the zones; all bounds are multiples of `chunk_bytes` from `base`.
Arena cut_arena(uint64_t base, uint64_t bytes, uint64_t chunk_bytes) noexcept;

// Ranges in one zone. A range that was released is handed out again for the same size first: its mapping is then still
// there and costs nothing.
class Ranges {
 public:
  void reset(Zone zone, uint64_t chunk_bytes) noexcept;

  // A range of at least `bytes`, padded to whole chunks and followed by the guard chunk: the one that was released
  // last. 0 when the zone is full.
  uint64_t allocate(uint64_t bytes) noexcept;
  // The same where everything fits: the lowest range whose home is free, so that a program that repeats itself gets the
  // same ranges each time; else one that has not had a home yet. It is at home then.
  uint64_t allocate_at_home(uint64_t bytes, Homes& homes);
  // `bytes` as in allocate().
  void release(uint64_t base, uint64_t bytes) noexcept;

  uint64_t padded(uint64_t bytes) const noexcept { return (bytes + chunk_bytes_ - 1) / chunk_bytes_ * chunk_bytes_; }

 private:
  using Bin = std::vector<uint64_t>;
  uint64_t take_released(Bin& bin, uint64_t total, const Homes& homes) noexcept;
  uint64_t take_bumped(uint64_t total) noexcept;
  uint64_t take_merged(uint64_t total) noexcept;

  Zone zone_;
  uint64_t chunk_bytes_ = 1;
  uint64_t next_ = 0;                       // offset of what was never handed out
  std::unordered_map<uint64_t, Bin> bins_;  // total size -> bases, newest last
};

// Hands out the program's addresses: large allocations get ranges, small ones places in blocks. Thread safe: program
// threads allocate and release, in the order of the program's calls, so that who gets which does not depend on time;
// the dispatcher releases what a plan has had, and asks for homes.
class Addresses {
 public:
  // Homes have at most `most_places`.
  void open(const Arena& arena, uint64_t chunk_bytes, uint64_t most_places = UINT64_MAX) noexcept {
    const std::lock_guard lock(mutex_);
    arena_ = arena;
    chunk_bytes_ = chunk_bytes;
    ranges_.reset(arena.ranges, chunk_bytes);
    slab_.reset(arena.slabs.base, arena.slabs.bytes / chunk_bytes * chunk_bytes, chunk_bytes);
    homes_.reset(most_places);
  }
  // Chunks of an allocation; 0: it is small and lives in a slab.
  uint32_t chunk_count(uint64_t bytes) const noexcept {
    if (footprint::is_small(bytes, chunk_bytes_)) return 0;
    return static_cast<uint32_t>((bytes + chunk_bytes_ - 1) / chunk_bytes_);
  }
  // 0 when the address space is used up. `room`: chunks that may live at once without anything having to leave; when
  // more do, nothing has a home any more.
  CUdeviceptr allocate(uint64_t bytes, uint64_t room = 0) noexcept;
  void release(CUdeviceptr address, uint64_t bytes) noexcept;
  // The home of the range, or the block, that begins there; none where it has none.
  void home_of(CUdeviceptr base, std::vector<Place>* places) const noexcept;

 private:
  CUdeviceptr allocate_small(uint64_t bytes, uint64_t room) noexcept;
  CUdeviceptr block_of(CUdeviceptr address) const noexcept {
    return address - (address - arena_.slabs.base) % chunk_bytes_;
  }

  mutable std::mutex mutex_;
  Arena arena_;
  uint64_t chunk_bytes_ = 1;
  Ranges ranges_;
  footprint::Slab slab_;
  Homes homes_;
};

}  // namespace reprise::replay

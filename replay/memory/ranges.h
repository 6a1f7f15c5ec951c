// Virtual addresses of managed allocations. Pure bookkeeping, no driver calls. Callers: the enforcer allocates, the
// dispatcher releases.
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

// Ranges in one zone. A range that was released is handed out again for the same size first, newest first: its mapping
// is then still there and costs nothing.
class Ranges {
 public:
  void reset(Zone zone, uint64_t chunk_bytes) noexcept;

  // A range of at least `bytes`, padded to whole chunks and followed by the guard chunk. 0 when the zone is full.
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

// Hands out the program's addresses: large allocations get ranges, small ones places in blocks. Thread safe: program
// threads allocate and release small ones, in the order of the program's calls, so that which block is in use does not
// depend on time; the dispatcher releases ranges.
class Addresses {
 public:
  void open(const Arena& arena, uint64_t chunk_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    arena_ = arena;
    chunk_bytes_ = chunk_bytes;
    ranges_.reset(arena.ranges, chunk_bytes);
    slab_.reset(arena.slabs.base, arena.slabs.bytes / chunk_bytes * chunk_bytes, chunk_bytes);
  }
  // Chunks of an allocation; 0: it is small and lives in a slab.
  uint32_t chunk_count(uint64_t bytes) const noexcept {
    if (footprint::is_small(bytes, chunk_bytes_)) return 0;
    return static_cast<uint32_t>((bytes + chunk_bytes_ - 1) / chunk_bytes_);
  }
  // 0 when the address space is used up.
  CUdeviceptr allocate(uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    return chunk_count(bytes) == 0 ? slab_.allocate(bytes) : ranges_.allocate(bytes);
  }
  void release(CUdeviceptr address, uint64_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    if (arena_.slabs.contains(address)) slab_.release(address, bytes);
    if (arena_.ranges.contains(address)) ranges_.release(address, bytes);
  }

 private:
  std::mutex mutex_;
  Arena arena_;
  uint64_t chunk_bytes_ = 1;
  Ranges ranges_;
  footprint::Slab slab_;
};

}  // namespace reprise::replay

// Hands out the program's addresses: large allocations get ranges, small ones places in blocks. Thread safe: program
// threads allocate and release small ones, in the order of the program's calls, so that which block is in use does not
// depend on time; the dispatcher releases ranges. The arena's picture: ranges.h.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <mutex>

#include "preload/footprint/footprint.h"
#include "replay/memory/ranges.h"

namespace reprise::replay {

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

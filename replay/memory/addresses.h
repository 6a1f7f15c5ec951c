// Hands out the program's addresses: large allocations get ranges, small ones slab blocks. Thread safe: program threads
// allocate, the dispatcher releases an address when the last work that used it is done. The arena's picture: ranges.h.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <mutex>

#include "replay/memory/ranges.h"
#include "replay/memory/slab.h"

namespace reprise::replay {

class Addresses {
 public:
  void open(const Arena& arena, uint64_t chunk_bytes) noexcept {
    const std::lock_guard lock(mutex_);
    arena_ = arena;
    chunk_bytes_ = chunk_bytes;
    ranges_.reset(arena.ranges, chunk_bytes);
    slab_.reset(arena.slabs);
  }
  // Chunks of an allocation; 0: it is small and lives in a slab.
  uint32_t chunk_count(uint64_t bytes) const noexcept {
    if (bytes < chunk_bytes_ / 2) return 0;
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
  Slab slab_;
};

}  // namespace reprise::replay

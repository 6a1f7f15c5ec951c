// Addresses of small allocations: blocks of one chunk each, which small allocations share as they do in the driver: the
// lowest place that is free, at multiples of 512 bytes, never over a block's end. Pure bookkeeping. Callers: the
// replay's Addresses, for what it hands out; Footprint, for what a program takes without us.
//
//     zone   | block 0: [a][b]..[c] | block 1: [d]......... | block 2: nothing lives here |
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace reprise::footprint {

class Slab {
 public:
  static constexpr uint64_t kAlignment = 512;

  // For addresses from `base` on, `bytes` of them: whole blocks of `block_bytes`, a multiple of kAlignment.
  void reset(uint64_t base, uint64_t bytes, uint64_t block_bytes) noexcept;

  // Address for `bytes`, at most a block. 0: zone full.
  uint64_t allocate(uint64_t bytes) noexcept;
  void release(uint64_t address, uint64_t bytes) noexcept;

  // Blocks in which something lives.
  uint64_t blocks() const noexcept { return blocks_; }

  static uint64_t padded(uint64_t bytes) noexcept {
    return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  void insert_free(uint64_t offset, uint64_t bytes) noexcept;
  void erase_free(std::map<uint64_t, uint64_t>::iterator place) noexcept;
  uint64_t lowest_free(uint64_t bytes) const noexcept;

  uint64_t base_ = 0;
  uint64_t bytes_ = 0;
  uint64_t block_bytes_ = kAlignment;
  uint64_t blocks_ = 0;
  std::vector<uint32_t> live_;                      // by block: allocations; those behind its end were never used
  std::map<uint64_t, uint64_t> by_offset_;          // free places, none over a block's end: offset -> bytes
  std::map<uint64_t, std::set<uint64_t>> by_size_;  // the same: bytes -> offsets
};

}  // namespace reprise::footprint

// Small allocations: blocks of 512-byte alignment in one zone of the arena that is mapped chunk by chunk and always
// resident. Pure bookkeeping; the caller maps the chunks that a block covers. Callers: the enforcer under its lock.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "replay/memory/ranges.h"

namespace reprise::replay {

class Slab {
 public:
  static constexpr uint64_t kAlignment = 512;

  void reset(Zone zone) noexcept;

  // Address of a block of `bytes`, best fit, lowest address among equals, so that few chunks are touched. 0: zone full.
  uint64_t allocate(uint64_t bytes) noexcept;
  void release(uint64_t address, uint64_t bytes) noexcept;

  // Offset from the zone's start behind which no block was ever handed out.
  uint64_t extent() const noexcept { return end_; }

  static uint64_t padded(uint64_t bytes) noexcept {
    // One byte more than asked for, so that a one-past-end pointer is still inside its own block.
    return (bytes + kAlignment) / kAlignment * kAlignment;
  }

 private:
  void insert_free(uint64_t offset, uint64_t bytes) noexcept;
  void erase_free(std::map<uint64_t, uint64_t>::iterator block) noexcept;

  Zone zone_;
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> by_offset_;           // free blocks: offset -> bytes
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // the same: (bytes, offset)
};

}  // namespace reprise::replay

// What the stitching allocator has handed out, by address. Caller: Stitcher.
#pragma once
#include <cstdint>

#include "preload/defragment/stitch/tables.h"

namespace reprise::stitch {

struct Live {
  uint64_t address = 0;  // 0: empty
  uint64_t bytes = 0;
  Index block = kNone;
  bool is_stitched = false;
};

class LiveTable {
 public:
  bool open(uint64_t most, uint64_t chunk_bytes) noexcept {
    uint64_t slots = 1;
    while (slots < most * 2 + 2) slots *= 2;
    mask_ = slots - 1;
    chunk_bytes_ = chunk_bytes;
    return live_.open(slots);
  }
  void remember(const Live& live) noexcept {
    uint64_t slot = slot_of(live.address);
    while (live_[slot].address != 0) slot = (slot + 1) & mask_;
    live_[slot] = live;
  }
  // False: nothing is there. Entries behind the one that goes move up, so that a search never meets a hole.
  bool forget(uint64_t address, Live* live) noexcept {
    uint64_t hole = slot_of(address);
    while (live_[hole].address != address) {
      if (live_[hole].address == 0) return false;
      hole = (hole + 1) & mask_;
    }
    *live = live_[hole];
    for (uint64_t slot = (hole + 1) & mask_; live_[slot].address != 0; slot = (slot + 1) & mask_) {
      const uint64_t wanted = slot_of(live_[slot].address);
      if (((slot - wanted) & mask_) < ((slot - hole) & mask_)) continue;
      live_[hole] = live_[slot];
      hole = slot;
    }
    live_[hole] = Live{};
    return true;
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    for (uint64_t slot = 0; slot <= mask_; ++slot) {
      if (live_[slot].address != 0) visit(live_[slot]);
    }
  }

 private:
  uint64_t slot_of(uint64_t address) const noexcept {
    return (address / chunk_bytes_ * 0x9e3779b97f4a7c15ull >> 20) & mask_;
  }

  Array<Live> live_;  // open addressing
  uint64_t mask_ = 0;
  uint64_t chunk_bytes_ = 1;
};

}  // namespace reprise::stitch

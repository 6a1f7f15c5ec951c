// The managed allocations and where their bytes are. Dispatcher thread only: it follows the program's calls in log
// order, so a table entry is the allocation as of the call that is being issued, also where addresses are used again.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "replay/digest/digests.h"
#include "replay/memory/tiers/slots.h"
#include "replay/memory/uses.h"

namespace reprise::replay {

// What is known of the bytes in a tensor's host slot, valid or not: where the tensor's own bytes have the same digest,
// it leaves without a copy.
struct SlotDigest {
  DigestCell cell = kNoDigest;
  LaneUse computed;      // when the cell holds it
  uint32_t misses = 0;   // comparisons in a row that found other bytes
  uint32_t skipped = 0;  // departures that are still to come without one: those of tensors that always change
};

struct ResidentTensor {
  uint64_t allocation = 0;  // the program's id
  CUdeviceptr base = 0;
  uint64_t size = 0;         // bytes as asked for
  uint32_t chunk_count = 0;  // 0: small, lives in a block and moves with it
  bool in_handover = false;  // the program has freed it, and the plan keeps it for the allocation that takes it over
  bool resident = false;     // every chunk of its mapping is occupied by it
  bool defined = false;      // the program has written to it
  bool host_valid = false;   // the host slot holds the current bytes (once host_ready is complete)
  bool arriving = false;     // strict safety: has its chunks, but is not mapped yet
  bool left_before = false;  // on demand: it has been evicted since it was allocated
  bool aliased = false;      // under a plan with audited safety: its range stays mapped while its bytes are away
  bool dropped = false;      // under a plan: given up without a copy; a launch makes it again (dispatch/repeats.h)
  bool late_freed = false;   // ... and freed by the program, while the plan still needs its bytes
  bool lost = false;         // a failed device or copy took its only copy: uses of it answer an error
  HostSlot host;
  SlotDigest digest;      // of what is in the host slot
  LaneUse host_ready;     // when the copy to the slot is complete
  LaneUse slot_read;      // when the last copy from the slot is complete, this tensor's or that of who had it before
  LaneUses ready;         // what must be complete before the program's work may touch it
  LaneUses uses;          // the work that has touched it since it became resident
  uint64_t last_use = 0;  // tick of the last access
  uint64_t pinned = 0;    // tick of the call that needs it now
};

class Tensors {
 public:
  ResidentTensor* find(CUdeviceptr base) noexcept {
    const auto found = by_base_.find(base);
    return found == by_base_.end() ? nullptr : found->second.get();
  }
  ResidentTensor* insert(CUdeviceptr base) noexcept {
    auto& slot = by_base_[base];
    slot = std::make_unique<ResidentTensor>();
    slot->base = base;
    return slot.get();
  }
  void erase(CUdeviceptr base) noexcept { by_base_.erase(base); }
  void clear() noexcept { by_base_.clear(); }
  size_t size() const noexcept { return by_base_.size(); }
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [base, tensor] : by_base_) visit(*tensor);
  }

 private:
  std::unordered_map<CUdeviceptr, std::unique_ptr<ResidentTensor>> by_base_;
};

}  // namespace reprise::replay

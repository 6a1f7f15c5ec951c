// The managed allocations and where their bytes are. Dispatcher thread only: it follows the program's calls in log
// order, so a table entry is the allocation as of the call that is being issued, also where addresses are used again.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "replay/digest/digests.h"
#include "replay/memory/lanes/uses.h"
#include "replay/memory/residency.h"
#include "replay/memory/tiers/slots.h"

namespace reprise::replay {

// What is known of the bytes in a tensor's host slot, valid or not: where the tensor's own bytes have the same digest,
// it leaves without a copy.
struct SlotDigest {
  DigestCell cell = kNoDigest;
  LaneUse computed;          // when the cell holds it
  uint32_t misses = 0;       // comparisons in a row that found other bytes
  uint32_t skipped = 0;      // departures that are still to come without one: those of tensors that always change
  bool left_before = false;  // on demand: since the tensor was allocated
};

struct ResidentTensor : Residency, Keeping {
  using Residency::Residency;
  uint64_t allocation = 0;  // the program's id
  CUdeviceptr base = 0;
  uint64_t size = 0;         // bytes as asked for
  uint32_t chunk_count = 0;  // 0: small, lives in a block and moves with it
  bool aliased = false;      // under a plan with audited safety: its range stays mapped while its bytes are away
  HostSlot host;
  SlotDigest digest;      // of what is in the host slot
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
  ResidentTensor* insert(CUdeviceptr base, uint64_t size, uint32_t chunk_count) noexcept {
    auto& slot = by_base_[base];
    slot = std::make_unique<ResidentTensor>(chunk_count == 0 ? Residency::State::in_block : Residency::State::away);
    slot->base = base;
    slot->size = size;
    slot->chunk_count = chunk_count;
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

// A small tensor was here, and this work may still use it.
struct FreedPlace {
  CUdeviceptr begin = 0;
  CUdeviceptr end = 0;
  LaneUses uses;
};

// Small tensors move a chunk at a time: a block is the chunk's worth of addresses that they share, and is itself a
// tensor for the pager, which comes and goes with all that lives in it. Blocks of the slab zone live while a small
// tensor does; those of a plan's region for good.
struct SlabBlock : ResidentTensor {
  uint64_t small_tensors = 0;  // that live here
  std::vector<FreedPlace> freed;

  // What must be complete before [begin, end) is another small tensor's. Those places are forgotten.
  LaneUses take_freed(CUdeviceptr begin, CUdeviceptr end) noexcept {
    LaneUses before;
    std::erase_if(freed, [&](const FreedPlace& place) {
      if (place.end <= begin || end <= place.begin) return false;
      before.merge(place.uses);
      // What is left of the place on either side waits for the same work.
      return place.begin >= begin && place.end <= end;
    });
    return before;
  }
};

class Blocks {
 public:
  void open(uint64_t chunk_bytes) noexcept { chunk_bytes_ = chunk_bytes; }
  CUdeviceptr base_of(CUdeviceptr address) const noexcept { return address / chunk_bytes_ * chunk_bytes_; }

  SlabBlock* find(CUdeviceptr address) noexcept {
    const auto found = by_base_.find(base_of(address));
    return found == by_base_.end() ? nullptr : found->second.get();
  }
  // The block of an address, found or made.
  SlabBlock& at(CUdeviceptr address) noexcept {
    auto& block = by_base_[base_of(address)];
    if (block == nullptr) {
      block = std::make_unique<SlabBlock>();
      block->base = base_of(address);
      block->size = chunk_bytes_;
      block->chunk_count = 1;
    }
    return *block;
  }
  void erase(const SlabBlock& block) noexcept { by_base_.erase(block.base); }
  size_t size() const noexcept { return by_base_.size(); }
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [base, block] : by_base_) visit(*block);
  }

 private:
  uint64_t chunk_bytes_ = 1;
  std::map<CUdeviceptr, std::unique_ptr<SlabBlock>> by_base_;
};

}  // namespace reprise::replay

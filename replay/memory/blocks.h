// Small tensors move a chunk at a time: a block is the chunk's worth of addresses that they share, and is itself a
// tensor for the pager, which comes and goes with all that lives in it. Blocks of the slab zone live while a small
// tensor does; those of a plan's region for good. Caller: whoever holds ManagedMemory, on the dispatcher thread.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "replay/memory/tensors.h"

namespace reprise::replay {

// A small tensor was here, and this work may still use it.
struct FreedPlace {
  CUdeviceptr begin = 0;
  CUdeviceptr end = 0;
  LaneUses uses;
};

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

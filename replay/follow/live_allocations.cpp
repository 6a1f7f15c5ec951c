#include "replay/follow/live_allocations.h"

namespace reprise::replay {

void LiveAllocations::open(uint64_t chunk_bytes, uint64_t granularity) noexcept {
  footprint_.open(granularity);
  if (chunk_bytes != granularity) in_chunks_.open(chunk_bytes);
}

void LiveAllocations::add(uint64_t id, const LiveAllocation& allocation) noexcept {
  all_[id] = allocation;
  bytes_ += allocation.size;
  footprint_.allocated(id, allocation.size);
  if (in_chunks_.is_open()) in_chunks_.allocated(id, allocation.size);
}

void LiveAllocations::remove(uint64_t id) noexcept {
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  const uint64_t size = found->second.size;
  bytes_ -= size;
  footprint_.freed(id, size);
  if (in_chunks_.is_open()) in_chunks_.freed(id, size);
  all_.erase(found);
}

}  // namespace reprise::replay

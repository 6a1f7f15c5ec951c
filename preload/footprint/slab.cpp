#include "preload/footprint/slab.h"

#include <algorithm>

namespace reprise::footprint {

void Slab::reset(uint64_t base, uint64_t bytes, uint64_t block_bytes) noexcept {
  base_ = base;
  bytes_ = bytes;
  block_bytes_ = block_bytes;
  blocks_ = 0;
  live_.clear();
  by_offset_.clear();
  by_size_.clear();
}

uint64_t Slab::lowest_free(uint64_t bytes) const noexcept {
  uint64_t lowest = UINT64_MAX;
  for (auto sized = by_size_.lower_bound(bytes); sized != by_size_.end(); ++sized) {
    lowest = std::min(lowest, *sized->second.begin());
  }
  return lowest;
}

uint64_t Slab::allocate(uint64_t bytes) noexcept {
  const uint64_t need = padded(bytes);
  if (need > block_bytes_) return 0;
  uint64_t offset = lowest_free(need);
  if (offset == UINT64_MAX) {
    offset = live_.size() * block_bytes_;
    if (bytes_ - offset < block_bytes_) return 0;
    live_.push_back(0);
    insert_free(offset, block_bytes_);
  }
  const auto place = by_offset_.find(offset);
  const uint64_t size = place->second;
  erase_free(place);
  if (size > need) insert_free(offset + need, size - need);
  if (live_[offset / block_bytes_]++ == 0) ++blocks_;
  return base_ + offset;
}

void Slab::release(uint64_t address, uint64_t bytes) noexcept {
  uint64_t offset = address - base_;
  uint64_t size = padded(bytes);
  const uint64_t block = offset / block_bytes_;
  if (--live_[block] == 0) --blocks_;
  const auto next = by_offset_.find(offset + size);
  if (next != by_offset_.end() && next->first / block_bytes_ == block) {
    size += next->second;
    erase_free(next);
  }
  const auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset && before->first / block_bytes_ == block) {
      offset = before->first;
      size += before->second;
      erase_free(before);
    }
  }
  insert_free(offset, size);
}

void Slab::insert_free(uint64_t offset, uint64_t bytes) noexcept {
  by_offset_[offset] = bytes;
  by_size_[bytes].insert(offset);
}

void Slab::erase_free(std::map<uint64_t, uint64_t>::iterator place) noexcept {
  const auto sized = by_size_.find(place->second);
  sized->second.erase(place->first);
  if (sized->second.empty()) by_size_.erase(sized);
  by_offset_.erase(place);
}

}  // namespace reprise::footprint

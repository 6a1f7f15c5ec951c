#include "replay/memory/tiers/slots.h"

#include <algorithm>

namespace reprise::replay {

void Slots::reset(uint64_t unit) noexcept {
  unit_ = unit;
  free_bytes_ = 0;
  capacity_ = 0;
  slabs_.clear();
  holes_.clear();
}

void Slots::add_slab(uint64_t address, uint64_t bytes) noexcept {
  bytes = bytes / unit_ * unit_;
  if (bytes == 0) return;
  slabs_[address] = bytes;
  holes_[address] = bytes;
  free_bytes_ += bytes;
  capacity_ += bytes;
}

bool Slots::allocate(uint64_t bytes, HostSlot* slot) noexcept {
  uint64_t left = rounded(bytes);
  if (left == 0 || left > free_bytes_) return false;
  for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
    if (hole->second < left) continue;
    take(hole, left, slot);
    return true;
  }
  while (left > 0) {
    const auto largest = std::max_element(holes_.begin(), holes_.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    const uint64_t part = std::min(left, largest->second);
    take(largest, part, slot);
    left -= part;
  }
  return true;
}

void Slots::take(std::map<uint64_t, uint64_t>::iterator hole, uint64_t bytes, HostSlot* slot) noexcept {
  const auto [address, size] = *hole;
  holes_.erase(hole);
  if (size > bytes) holes_[address + bytes] = size - bytes;
  free_bytes_ -= bytes;
  slot->push_back({address, bytes});
}

void Slots::release(HostSlot* slot) noexcept {
  for (const HostPiece& piece : *slot) {
    uint64_t address = piece.address;
    uint64_t bytes = piece.bytes;
    free_bytes_ += bytes;
    const auto next = holes_.find(address + bytes);
    if (next != holes_.end() && !starts_slab(next->first)) {
      bytes += next->second;
      holes_.erase(next);
    }
    const auto after = holes_.lower_bound(address);
    if (after != holes_.begin() && !starts_slab(address)) {
      const auto before = std::prev(after);
      if (before->first + before->second == address) {
        address = before->first;
        bytes += before->second;
        holes_.erase(before);
      }
    }
    holes_[address] = bytes;
  }
  slot->clear();
}

}  // namespace reprise::replay

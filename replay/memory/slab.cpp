#include "replay/memory/slab.h"

namespace reprise::replay {

void Slab::reset(Zone zone) noexcept {
  zone_ = zone;
  end_ = 0;
  by_offset_.clear();
  by_size_.clear();
}

uint64_t Slab::allocate(uint64_t bytes) noexcept {
  if (bytes == 0 || bytes >= zone_.bytes) return 0;
  const uint64_t need = padded(bytes);
  const auto fit = by_size_.lower_bound({need, 0});
  if (fit != by_size_.end()) {
    const auto [size, offset] = *fit;
    erase_free(by_offset_.find(offset));
    if (size > need) insert_free(offset + need, size - need);
    return zone_.base + offset;
  }
  // The last free block may reach the end: grow it rather than leave a hole.
  uint64_t offset = end_;
  if (!by_offset_.empty()) {
    const auto last = std::prev(by_offset_.end());
    if (last->first + last->second == end_) {
      offset = last->first;
      erase_free(last);
    }
  }
  if (zone_.bytes - offset < need) {
    if (offset < end_) insert_free(offset, end_ - offset);
    return 0;
  }
  end_ = offset + need;
  return zone_.base + offset;
}

void Slab::release(uint64_t address, uint64_t bytes) noexcept {
  uint64_t offset = address - zone_.base;
  uint64_t size = padded(bytes);
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && next->first == offset + size) {
    size += next->second;
    erase_free(next);
  }
  auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      size += before->second;
      erase_free(before);
    }
  }
  insert_free(offset, size);
}

void Slab::insert_free(uint64_t offset, uint64_t bytes) noexcept {
  by_offset_[offset] = bytes;
  by_size_.insert({bytes, offset});
}

void Slab::erase_free(std::map<uint64_t, uint64_t>::iterator block) noexcept {
  by_size_.erase({block->second, block->first});
  by_offset_.erase(block);
}

}  // namespace reprise::replay

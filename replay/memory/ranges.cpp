#include "replay/memory/ranges.h"

namespace reprise::replay {

namespace {

// In a structure that is not set as a whole, the upper half of an old address may stand behind a small number. Such a
// word must be no address: tensors begin where the lower half of theirs is no small number.
constexpr uint64_t kAway = 1ull << 30;

Zone away(uint64_t base, uint64_t bytes) noexcept {
  return bytes >= 4 * kAway ? Zone{base + kAway, bytes - kAway} : Zone{base, bytes};
}

}  // namespace

Arena cut_arena(uint64_t base, uint64_t bytes, uint64_t chunk_bytes) noexcept {
  const uint64_t eighth = bytes / 8 / chunk_bytes * chunk_bytes;
  Arena arena;
  arena.slabs = away(base, eighth);
  arena.plan = away(base + eighth, eighth * 3);
  arena.ranges = away(base + eighth * 4, eighth * 4);
  return arena;
}

void Ranges::reset(Zone zone, uint64_t chunk_bytes) noexcept {
  zone_ = zone;
  chunk_bytes_ = chunk_bytes;
  next_ = 0;
  bins_.clear();
}

uint64_t Ranges::allocate(uint64_t bytes) noexcept {
  if (bytes == 0 || bytes > zone_.bytes) return 0;
  const uint64_t total = padded(bytes) + chunk_bytes_;
  const auto bin = bins_.find(total);
  if (bin != bins_.end() && !bin->second.empty()) {
    const uint64_t base = bin->second.back();
    bin->second.pop_back();
    return base;
  }
  const uint64_t base = take_bumped(total);
  return base != 0 ? base : take_merged(total);
}

void Ranges::release(uint64_t base, uint64_t bytes) noexcept { bins_[padded(bytes) + chunk_bytes_].push_back(base); }

uint64_t Ranges::take_bumped(uint64_t total) noexcept {
  if (zone_.bytes - next_ < total) return 0;
  const uint64_t base = zone_.base + next_;
  next_ += total;
  return base;
}

// Rare, the zone was used up once: neighbouring free ranges are joined (what was never handed out counts as one of
// them), then the first that is large enough is cut; the bins keep the rest.
uint64_t Ranges::take_merged(uint64_t total) noexcept {
  std::map<uint64_t, uint64_t> free;
  for (const auto& [size, bases] : bins_) {
    for (const uint64_t base : bases) free[base] = size;
  }
  bins_.clear();
  if (next_ < zone_.bytes) free[zone_.base + next_] = zone_.bytes - next_;
  next_ = zone_.bytes;
  for (auto range = free.begin(); range != free.end();) {
    const auto next = std::next(range);
    if (next != free.end() && range->first + range->second == next->first) {
      range->second += next->second;
      free.erase(next);
    } else {
      ++range;
    }
  }
  uint64_t found = 0;
  for (const auto& [base, size] : free) {
    if (found != 0 || size < total) {
      bins_[size].push_back(base);
      continue;
    }
    found = base;
    if (size > total) bins_[size - total].push_back(base + total);
  }
  return found;
}

}  // namespace reprise::replay

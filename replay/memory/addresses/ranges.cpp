#include "replay/memory/addresses/ranges.h"

#include <algorithm>

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

// 0: a range that was never handed out comes first, if there is one.
uint64_t Ranges::take_released(Bin& bin, uint64_t total, const Homes& homes) noexcept {
  auto found = bin.end();
  for (auto base = bin.begin(); base != bin.end(); ++base) {
    if (homes.is_free(*base) && (found == bin.end() || *base < *found)) found = base;
  }
  const auto without_home = [&](uint64_t base) { return homes.of(base) == nullptr; };
  if (found == bin.end()) found = std::find_if(bin.begin(), bin.end(), without_home);
  if (found == bin.end() && homes.is_crowded(total / chunk_bytes_ - 1)) {
    found = std::min_element(bin.begin(), bin.end(),
                             [&](uint64_t a, uint64_t b) { return homes.last_taken(a) < homes.last_taken(b); });
  }
  if (found == bin.end()) return 0;
  const uint64_t base = *found;
  bin.erase(found);
  return base;
}

uint64_t Ranges::allocate_at_home(uint64_t bytes, Homes& homes) {
  if (bytes == 0 || bytes > zone_.bytes) return 0;
  const uint64_t total = padded(bytes) + chunk_bytes_;
  const uint64_t count = total / chunk_bytes_ - 1;
  uint64_t base = take_released(bins_[total], total, homes);
  if (base == 0) {
    if (homes.is_crowded(count)) homes.forget_freed();
    base = take_bumped(total);
  }
  if (base == 0) {
    homes.forget_freed();  // ranges are cut anew
    base = take_released(bins_[total], total, homes);
    if (base == 0) base = take_merged(total);
  }
  if (base == 0) return 0;
  if (homes.is_free(base)) {
    homes.take(base);
  } else {
    homes.settle(base, count);
  }
  return base;
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

CUdeviceptr Addresses::allocate(uint64_t bytes, uint64_t room) noexcept {
  const std::lock_guard lock(mutex_);
  const uint32_t chunks = chunk_count(bytes);
  if (chunks == 0) return allocate_small(bytes, room);
  if (homes_.kept() && homes_.taken() + chunks > room) homes_.stop();
  return homes_.kept() ? ranges_.allocate_at_home(bytes, homes_) : ranges_.allocate(bytes);
}

CUdeviceptr Addresses::allocate_small(uint64_t bytes, uint64_t room) noexcept {
  const uint64_t blocks = slab_.blocks();
  const CUdeviceptr address = slab_.allocate(bytes);
  if (!homes_.kept() || address == 0 || slab_.blocks() == blocks) return address;
  if (homes_.taken() >= room) {
    homes_.stop();
  } else if (const CUdeviceptr block = block_of(address); homes_.is_free(block)) {
    homes_.take(block);
  } else {
    homes_.settle(block, 1);
  }
  return address;
}

void Addresses::release(CUdeviceptr address, uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (arena_.slabs.contains(address)) {
    const uint64_t blocks = slab_.blocks();
    slab_.release(address, bytes);
    if (slab_.blocks() < blocks) homes_.leave(block_of(address));
  } else if (arena_.ranges.contains(address)) {
    ranges_.release(address, bytes);
    homes_.leave(address);
  }
}

void Addresses::home_of(CUdeviceptr base, std::vector<Place>* places) const noexcept {
  const std::lock_guard lock(mutex_);
  const std::vector<Place>* const home = homes_.of(base);
  places->clear();
  if (home != nullptr) *places = *home;
}

}  // namespace reprise::replay

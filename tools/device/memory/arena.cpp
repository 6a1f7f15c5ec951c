#include "tools/device/memory/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tools/device/base/settings.h"

namespace reprise::sim {
namespace {

constexpr uint64_t kGuardBytes = 2ull << 20;  // never mapped, after each large block

// Where a driver's first allocation was seen (H200, driver 580): so low that two numbers of 32 bits side by side among
// a kernel's parameters may be the address of a tensor.
constexpr uint64_t kLowestAddress = 0x302000000;

uint64_t reserve_addresses(uint64_t* bytes) {
  for (*bytes = kMostReserved; *bytes >= 1ull << 30; *bytes /= 2) {
    void* base = mmap(reinterpret_cast<void*>(kPlacesRanges ? kLowestAddress : 0), *bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) return reinterpret_cast<uint64_t>(base);
  }
  *bytes = 0;
  return 0;
}

void poison(uint64_t address, uint64_t bytes) {
  if (settings().poison) std::memset(reinterpret_cast<void*>(address), kPoison, std::min(bytes, kPoisonedBytes));
}

}  // namespace

void FreeIntervals::give(uint64_t base, uint64_t bytes) {
  uint64_t end = base + bytes;
  auto next = free_.lower_bound(base);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->second == base) {
      before->second = end;
      return;
    }
  }
  free_.emplace_hint(next, base, end);
}

uint64_t FreeIntervals::take(uint64_t bytes, uint64_t alignment) {
  for (const auto& [base, end] : free_) {
    const uint64_t start = round_up(base, alignment);
    if (start >= end || end - start < bytes) continue;
    take_at(start, bytes);
    return start;
  }
  return 0;
}

bool FreeIntervals::contains(uint64_t base, uint64_t bytes) const {
  auto next = free_.upper_bound(base);
  if (next == free_.begin()) return false;
  --next;
  return base + bytes >= base && next->second >= base + bytes;
}

bool FreeIntervals::take_at(uint64_t base, uint64_t bytes) {
  if (!contains(base, bytes)) return false;
  const auto holder = std::prev(free_.upper_bound(base));
  const uint64_t start = holder->first;
  const uint64_t end = holder->second;
  free_.erase(holder);
  if (start < base) free_.emplace(start, base);
  if (base + bytes < end) free_.emplace(base + bytes, end);
  return true;
}

Arena::Arena() {
  base_ = reserve_addresses(&bytes_);
  const uint64_t first = round_up(base_, kSlabBytes);
  if (bytes_ > kSlabBytes) addresses_.give(first, (base_ + bytes_ - first) / kSlabBytes * kSlabBytes);
}

uint64_t Arena::map_block(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const uint64_t span = round_up(bytes, kSlabBytes) + kGuardBytes;
  const uint64_t address = addresses_.take(span, kSlabBytes);
  if (address == 0) return 0;
  void* const place = reinterpret_cast<void*>(address);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (mmap(place, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) {
    addresses_.give(address, span);
    return 0;
  }
  if (bytes >= kSlabBytes) madvise(place, bytes, MADV_HUGEPAGE);
  return address;
}

void Arena::unmap_block(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const void* const place = mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  // Memory that could not be taken back is there still: its addresses are not for another block.
  if (place != MAP_FAILED) addresses_.give(address, round_up(bytes, kSlabBytes) + kGuardBytes);
}

uint64_t Arena::take_kept(uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(bytes);
  if (found == kept_.end()) return 0;
  const uint64_t address = found->second;
  if (mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) != 0) return 0;
  kept_bytes_ -= bytes;
  kept_.erase(found);
  return address;
}

bool Arena::keep(uint64_t address, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes > kKeptBytes) return false;
  if (mprotect(reinterpret_cast<void*>(address), bytes, PROT_NONE) != 0) return false;
  kept_.emplace(bytes, address);
  kept_bytes_ += bytes;
  return true;
}

uint64_t Arena::allocate(uint64_t bytes, int device) {
  if (bytes >= kSmallLimit) {
    if (const uint64_t kept = take_kept(bytes); kept != 0) return kept;
    const uint64_t address = map_block(bytes);
    if (address != 0) poison(address, bytes);
    return address;
  }
  const std::lock_guard lock(small_mutex_);
  FreeIntervals& small = small_[device];
  if (const uint64_t address = small.take(bytes, kDeviceUnit); address != 0) return address;
  const uint64_t slab = map_block(kSlabBytes);
  if (slab == 0) return 0;
  poison(slab, kSlabBytes);
  small.give(slab, kSlabBytes);
  return small.take(bytes, kDeviceUnit);
}

// Slabs are kept: what fits in one fits again.
void Arena::free(uint64_t address, uint64_t bytes, int device) {
  if (bytes >= kSmallLimit) {
    if (!keep(address, bytes)) unmap_block(address, bytes);
    return;
  }
  const std::lock_guard lock(small_mutex_);
  small_[device].give(address, bytes);
}

Arena& arena() {
  static Arena& instance = *new Arena;
  return instance;
}

}  // namespace reprise::sim

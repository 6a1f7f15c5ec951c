// What a program's allocations take of a device, by the rule of decision 0026: small ones share blocks of one chunk,
// others take whole chunks. Callers: the simulated device, which charges by it; the replay's PlanFollower: a percentage
// budget is of its peak, and as it follows the calls alone, that does not depend on what is away, or on time.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "preload/footprint/slab.h"

namespace reprise::footprint {

// Is an allocation of so many bytes one of those that share a chunk?
inline bool is_small(uint64_t bytes, uint64_t chunk_bytes) noexcept { return bytes < chunk_bytes / 2; }

class Footprint {
 public:
  void open(uint64_t chunk_bytes) noexcept {
    chunk_bytes_ = chunk_bytes;
    slab_.reset(kBase, kBase, chunk_bytes);
    small_.clear();
    large_bytes_ = 0;
  }
  bool is_open() const noexcept { return chunk_bytes_ != 0; }
  void allocated(uint64_t allocation, uint64_t bytes) noexcept {
    if (is_small(bytes, chunk_bytes_)) {
      small_[allocation] = slab_.allocate(bytes);
    } else {
      large_bytes_ += chunks(bytes) * chunk_bytes_;
    }
  }
  void freed(uint64_t allocation, uint64_t bytes) noexcept {
    const auto small = small_.find(allocation);
    if (small == small_.end()) {
      large_bytes_ -= chunks(bytes) * chunk_bytes_;
      return;
    }
    if (small->second != 0) slab_.release(small->second, bytes);
    small_.erase(small);
  }
  uint64_t bytes() const noexcept { return large_bytes_ + slab_.blocks() * chunk_bytes_; }

 private:
  static constexpr uint64_t kBase = uint64_t{1} << 46;  // 0 is no address
  uint64_t chunks(uint64_t bytes) const noexcept { return (bytes + chunk_bytes_ - 1) / chunk_bytes_; }

  uint64_t chunk_bytes_ = 0;
  uint64_t large_bytes_ = 0;
  Slab slab_;
  std::unordered_map<uint64_t, uint64_t> small_;  // allocation -> its place
};

}  // namespace reprise::footprint

// The host tier: few large slabs of pinned memory, taken when the program's allocations need them, up to a cap.
// Callers: the enforcer (reserve, when the program allocates) and the dispatcher (allocate, release).
#pragma once
#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

#include "replay/memory/tiers/slots.h"

namespace reprise::replay {

class HostTier {
 public:
  static constexpr uint64_t kSlotUnit = 64 * 1024;

  void open(uint64_t cap_bytes) noexcept;

  // Makes the tier at least `bytes` large. False when the cap or the system forbids. A context must be current.
  bool reserve(uint64_t bytes) noexcept;
  // A slot for `bytes`; grows the tier when it is full. False when that fails.
  bool allocate(uint64_t bytes, HostSlot* slot) noexcept;
  void release(HostSlot* slot) noexcept;

  uint64_t cap() const noexcept { return cap_; }
  uint64_t capacity() noexcept;
  // Frees all slabs; nothing may be copied to or from them any more.
  void close() noexcept;

 private:
  bool grow(uint64_t bytes) noexcept;

  std::mutex grow_mutex_;  // held across cuMemHostAlloc: rare
  std::mutex mutex_;
  Slots slots_;
  std::vector<void*> slabs_;
  uint64_t cap_ = 0;
};

}  // namespace reprise::replay

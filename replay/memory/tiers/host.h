// The host tier: few large slabs of pinned memory, up to a cap. A thread of its own takes them ahead of the program's
// allocations that need them: pinning takes long, and a program's thread must not do it while a stream is captured.
// Callers: the enforcer (want and reserve, when the program allocates) and the dispatcher (allocate, release).
#pragma once
#include <cuda.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "replay/memory/tiers/slots.h"

namespace reprise::replay {

class HostTier {
 public:
  static constexpr uint64_t kSlotUnit = 64 * 1024;

  void open(uint64_t cap_bytes) noexcept;
  // Starts the thread, which pins in this context. False when the system gives none: reserve() does it itself then.
  bool start(CUcontext context) noexcept;

  // The tier should be at least so large, soon: returns at once.
  void want(uint64_t bytes) noexcept;
  // Makes the tier at least `bytes` large. False when the cap or the system forbids. A context must be current.
  bool reserve(uint64_t bytes) noexcept;
  // A slot for `bytes`; grows the tier when it is full. False when that fails. The calling thread's capture mode must
  // be relaxed.
  bool allocate(uint64_t bytes, HostSlot* slot) noexcept;
  void release(HostSlot* slot) noexcept;

  uint64_t cap() const noexcept { return cap_; }
  uint64_t capacity() noexcept;
  // Frees all slabs; nothing may be copied to or from them any more.
  void close() noexcept;

 private:
  bool grow(uint64_t bytes) noexcept;
  void run(CUcontext context) noexcept;

  std::mutex grow_mutex_;  // held across cuMemHostAlloc: rare
  std::mutex thread_mutex_;
  std::condition_variable changed_;
  bool has_thread_ = false;
  bool stopping_ = false;
  uint64_t wanted_ = 0;    // bytes in all
  uint64_t failures_ = 0;  // of what was wanted
  std::mutex mutex_;
  Slots slots_;
  std::vector<void*> slabs_;
  uint64_t cap_ = 0;
};

}  // namespace reprise::replay

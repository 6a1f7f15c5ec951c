// A mutex that threads get in the order in which they asked for it, so that a thread which locks it again and again
// does not starve the others. For std::lock_guard. Caller: the enforcer, whose submission lock is held while a full
// command log makes its holder wait.
#pragma once
#include <atomic>
#include <cstdint>

namespace reprise::replay {

class FairMutex {
 public:
  void lock() noexcept {
    const uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    for (int spin = 0;; ++spin) {
      const uint32_t now = serving_.load(std::memory_order_acquire);
      if (now == mine) return;
      if (spin < kSpins) {
        __builtin_ia32_pause();
      } else {
        serving_.wait(now, std::memory_order_acquire);
      }
    }
  }
  // Only where nobody holds the mutex or waits for it.
  bool try_lock() noexcept {
    uint32_t now = serving_.load(std::memory_order_acquire);
    return next_.compare_exchange_strong(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    serving_.fetch_add(1, std::memory_order_release);
    serving_.notify_all();
  }

 private:
  static constexpr int kSpins = 64;
  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> serving_{0};
};

}  // namespace reprise::replay

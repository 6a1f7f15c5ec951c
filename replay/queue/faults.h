// Errors of deferred calls, on their way to the program: a driver may report the failure of asynchronous work at any
// later call, and so do we. Callers: the dispatcher reports, the enforcer takes.
//
// Two kinds. An order (an event's record or wait, the end of a stream) that the driver refuses because the program
// named what is none: its code, told once, by the next call that can tell it; the driver would have refused it in the
// program's own call, too. Work or an order that was lost (its call had already answered SUCCESS): as after a kernel
// that failed on the device, every later call answers CUDA_ERROR_LAUNCH_FAILED, or the driver's own code where that is
// one of those. What the program computes from old bytes is then never taken for a result.
#pragma once
#include <cuda.h>

#include <atomic>

#include "preload/driver/results.h"

namespace reprise::replay {

class Faults {
 public:
  // An order was refused.
  void report(CUresult result) noexcept {
    if (result == CUDA_SUCCESS) return;
    if (is_sticky(result)) return keep(result);
    int expected = CUDA_SUCCESS;
    pending_.compare_exchange_strong(expected, result, std::memory_order_release, std::memory_order_relaxed);
  }
  // Work was lost for this reason. True: it is the first that was.
  bool lose(CUresult result) noexcept {
    const bool first = !is_sticky(static_cast<CUresult>(pending_.load(std::memory_order_relaxed)));
    keep(is_sticky(result) ? result : CUDA_ERROR_LAUNCH_FAILED);
    return first;
  }
  // Memory that should be gone is still there, and what reaches it unseen would get old bytes.
  void unmapped(CUresult result) noexcept {
    if (result != CUDA_SUCCESS) lose(result);
  }
  // What take() would answer, without telling it.
  CUresult peek() const noexcept { return static_cast<CUresult>(pending_.load(std::memory_order_acquire)); }
  // The error to answer now; one that is not sticky is told once.
  CUresult take() noexcept {
    const int pending = pending_.load(std::memory_order_acquire);
    if (__builtin_expect(pending == CUDA_SUCCESS, true)) return CUDA_SUCCESS;
    const auto result = static_cast<CUresult>(pending);
    if (is_sticky(result)) {
      answered_.store(true, std::memory_order_relaxed);
      return result;
    }
    int expected = pending;
    if (pending_.compare_exchange_strong(expected, CUDA_SUCCESS)) return result;
    return is_sticky(static_cast<CUresult>(expected)) ? static_cast<CUresult>(expected) : CUDA_SUCCESS;
  }

  // A call of the program has answered a sticky error.
  bool answered() const noexcept { return answered_.load(std::memory_order_relaxed); }
  void answer() noexcept { answered_.store(true, std::memory_order_relaxed); }

  // The context that had them is gone.
  void clear() noexcept { pending_.store(CUDA_SUCCESS); }

 private:
  // The first sticky error stays.
  void keep(CUresult result) noexcept {
    int expected = pending_.load(std::memory_order_relaxed);
    while (!is_sticky(static_cast<CUresult>(expected)) &&
           !pending_.compare_exchange_weak(expected, result, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int> pending_{CUDA_SUCCESS};
  std::atomic<bool> answered_{false};
};

}  // namespace reprise::replay

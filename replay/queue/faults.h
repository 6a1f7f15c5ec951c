// Errors of deferred calls, on their way to the program: a driver may report the failure of asynchronous work at any
// later call, and so do we. Callers: the dispatcher reports, the enforcer takes.
//
// Two kinds. An order (an event's record or wait, the end of a stream) that the driver refuses: its code, told once, by
// the next call that can tell it. Work that was lost (a launch, copy or memset whose call had already answered
// SUCCESS): as after a kernel that failed on the device, every later call answers CUDA_ERROR_LAUNCH_FAILED, or the
// driver's own code where that is one of those. What the program computes from old bytes is then never taken for a
// result.
#pragma once
#include <cuda.h>

#include <atomic>

namespace reprise::replay {

// Errors after which the context is unusable: every later call answers them.
inline bool is_sticky(CUresult result) noexcept {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

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
  // The error to answer now; one that is not sticky is told once.
  CUresult take() noexcept {
    const int pending = pending_.load(std::memory_order_acquire);
    if (__builtin_expect(pending == CUDA_SUCCESS, true)) return CUDA_SUCCESS;
    const auto result = static_cast<CUresult>(pending);
    if (is_sticky(result)) return result;
    int expected = pending;
    if (pending_.compare_exchange_strong(expected, CUDA_SUCCESS)) return result;
    return is_sticky(static_cast<CUresult>(expected)) ? static_cast<CUresult>(expected) : CUDA_SUCCESS;
  }

 private:
  // The first sticky error stays.
  void keep(CUresult result) noexcept {
    int expected = pending_.load(std::memory_order_relaxed);
    while (!is_sticky(static_cast<CUresult>(expected)) &&
           !pending_.compare_exchange_weak(expected, result, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::atomic<int> pending_{CUDA_SUCCESS};
};

}  // namespace reprise::replay

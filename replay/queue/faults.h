// Errors of deferred calls, on their way to the program: a driver may report the failure of asynchronous work at any
// later call, and so do we. Callers: the dispatcher reports, the enforcer takes.
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
  void report(CUresult result) noexcept {
    if (result == CUDA_SUCCESS) return;
    int expected = CUDA_SUCCESS;
    if (!pending_.compare_exchange_strong(expected, result) && is_sticky(result)) pending_.store(result);
  }
  // The error to answer now; one that is not sticky is told once.
  CUresult take() noexcept {
    const int pending = pending_.load(std::memory_order_relaxed);
    if (__builtin_expect(pending == CUDA_SUCCESS, true)) return CUDA_SUCCESS;
    const auto result = static_cast<CUresult>(pending);
    if (is_sticky(result)) return result;
    int expected = pending;
    return pending_.compare_exchange_strong(expected, CUDA_SUCCESS) ? result : CUDA_SUCCESS;
  }

 private:
  std::atomic<int> pending_{CUDA_SUCCESS};
};

}  // namespace reprise::replay

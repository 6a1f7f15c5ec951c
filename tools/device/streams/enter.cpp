#include "tools/device/streams/enter.h"

#include "tools/device/streams/faults.h"

namespace reprise::sim {

std::atomic<uint32_t> driver_state{kNotInitialized};
thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

CUresult injected_fault(const char* function, const void* caller) noexcept {
  const uint32_t state = driver_state.load(std::memory_order_relaxed);
  return (state & kFaultsArmed) == 0 ? CUDA_SUCCESS : take_fault(function, caller);
}

CUresult enter_slowly(const char* function, const void* caller) noexcept {
  const uint32_t state = driver_state.load(std::memory_order_acquire);
  if ((state & (kForked | kNotInitialized)) != 0) return CUDA_ERROR_NOT_INITIALIZED;
  if ((state & kShutDown) != 0) return CUDA_ERROR_DEINITIALIZED;
  return injected_fault(function, caller);
}

}  // namespace reprise::sim

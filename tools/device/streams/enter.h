// The start of every API function: initialised? not a fork child? a fault to inject? a context, and no sticky error?
// Callers: all API functions, through the two macros.
#pragma once
#include <atomic>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/thread.h"
#include "tools/device/streams/context.h"

namespace reprise::sim {

// Bits that send a call the slow way round; 0 while all is ordinary.
enum : uint32_t { kNotInitialized = 1, kForked = 2, kFaultsArmed = 4, kShutDown = 8 };
extern std::atomic<uint32_t> driver_state;

CUresult enter_slowly(const char* function, const void* caller) noexcept;

// `caller` is where the call returns to.
inline CUresult enter(const char* function, const void* caller) noexcept {
  if (__builtin_expect(driver_state.load(std::memory_order_relaxed) != 0, false)) {
    if (const CUresult result = enter_slowly(function, caller); result != CUDA_SUCCESS) return result;
  }
  return thread_state.in_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

// As enter(), and the calling thread has a living context without a sticky error.
inline CUresult enter(const char* function, const void* caller, Context** context) noexcept {
  if (const CUresult result = enter(function, caller); result != CUDA_SUCCESS) return result;
  *context = thread_state.current;
  return *context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : (*context)->status();
}

// For functions that need no context: the sticky error of the current one, if there is one, or of the process.
inline CUresult sticky_error() noexcept {
  const Context* context = thread_state.current;
  return context == nullptr ? Context::process_status() : context->status();
}

// For functions that are allowed before cuInit and in callbacks: only injected faults.
CUresult injected_fault(const char* function, const void* caller) noexcept;

}  // namespace reprise::sim

#define SIM_ENTER()                                                                                \
  do {                                                                                             \
    if (const CUresult sim_entered = ::reprise::sim::enter(__func__, __builtin_return_address(0)); \
        sim_entered != CUDA_SUCCESS)                                                               \
      return sim_entered;                                                                          \
  } while (false)

// Declares `context`, the calling thread's.
#define SIM_ENTER_CONTEXT(context)                                                                         \
  ::reprise::sim::Context* context = nullptr;                                                              \
  if (const CUresult sim_entered = ::reprise::sim::enter(__func__, __builtin_return_address(0), &context); \
      sim_entered != CUDA_SUCCESS)                                                                         \
  return sim_entered

#define SIM_REQUIRE(condition, error) \
  do {                                \
    if (!(condition)) return error;   \
  } while (false)

#define SIM_TRY(expression)                                                                      \
  do {                                                                                           \
    if (const CUresult sim_result = (expression); sim_result != CUDA_SUCCESS) return sim_result; \
  } while (false)

// Compiles kernels for the host: includes nothing of a kernel, but gives it the CUDA C++ words that an ordinary header
// of kernels uses. A twin source includes this first, then the kernels, then names them: REPRISE_TWIN(scale<float>).
// Build it with reprise_twins() of twins.cmake. Words that are missing here do not compile.
#pragma once
#include <vector_functions.h>
#include <vector_types.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tools/device/twins/block.h"

// The driver finds a kernel by its symbol, so the symbol must be visible; __shared__ needs a place per engine thread.
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __managed__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__ __attribute__((visibility("default")))
#define __device__ __attribute__((visibility("default")))
#define __host__
#define __constant__ __attribute__((visibility("default")))
#define __managed__ __attribute__((visibility("default")))
#define __shared__ thread_local
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::reprise::sim::twin::indices.thread)
#define blockIdx (::reprise::sim::twin::indices.block)
#define blockDim (::reprise::sim::twin::indices.block_extent)
#define gridDim (::reprise::sim::twin::indices.grid_extent)
inline constexpr int warpSize = 32;

inline void __syncthreads() { ::reprise::sim::twin::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { ::reprise::sim::twin::warp_ballot(mask, false); }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() {}

namespace reprise::sim::twin {

template <typename T>
T shuffle(unsigned mask, T value, uint32_t source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_exchange(mask, bits, source);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace reprise::sim::twin

// A source outside the lane's own segment of `width` lanes means one's own value, as on the device.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const unsigned own = ::reprise::sim::twin::lane();
  const unsigned wide = static_cast<unsigned>(width);
  return ::reprise::sim::twin::shuffle(mask, value, (own & ~(wide - 1)) + (static_cast<unsigned>(source) & (wide - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const unsigned own = ::reprise::sim::twin::lane();
  const unsigned source = own ^ static_cast<unsigned>(lane_mask);
  const bool beyond = source / static_cast<unsigned>(width) > own / static_cast<unsigned>(width);
  return ::reprise::sim::twin::shuffle(mask, value, beyond ? own : source);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned own = ::reprise::sim::twin::lane();
  const bool beyond = own % static_cast<unsigned>(width) + delta >= static_cast<unsigned>(width);
  return ::reprise::sim::twin::shuffle(mask, value, beyond ? own : own + delta);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const unsigned own = ::reprise::sim::twin::lane();
  const bool beyond = own % static_cast<unsigned>(width) < delta;
  return ::reprise::sim::twin::shuffle(mask, value, beyond ? own : own - delta);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return ::reprise::sim::twin::warp_ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0 ? 1 : 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate == 0 ? 1 : 0) == 0 ? 1 : 0; }

// Other kernels may run at the same time, on the threads of other engines.
template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> target(*address);
  T seen = target.load(std::memory_order_relaxed);
  while (seen < value && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return seen;
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  std::atomic_ref<T> target(*address);
  T seen = target.load(std::memory_order_relaxed);
  while (value < seen && !target.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return seen;
}

using std::max;
using std::min;
template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

namespace reprise::sim::twin {

// A library's list. Hidden: each library has its own.
__attribute__((visibility("hidden"))) inline constinit const Twin* library_twins = nullptr;

template <auto Kernel>
struct Thunk;

template <typename... Arguments, void (*Kernel)(Arguments...)>
struct Thunk<Kernel> {
  static constexpr uint32_t kCount = sizeof...(Arguments);
  // The device aligns parameters as the host aligns members of a structure. One more element: arrays are never empty.
  static constexpr uint32_t kSizes[kCount + 1] = {sizeof(Arguments)..., 0};
  static constexpr auto kOffsets = [] {
    constexpr uint32_t alignments[kCount + 1] = {alignof(Arguments)..., 1};
    struct {
      uint32_t values[kCount + 1] = {};
    } offsets;
    uint32_t next = 0;
    for (uint32_t i = 0; i < kCount; ++i) {
      offsets.values[i] = (next + alignments[i] - 1) / alignments[i] * alignments[i];
      next = offsets.values[i] + kSizes[i];
    }
    return offsets;
  }();

  using Tuple = std::tuple<std::remove_cv_t<Arguments>...>;

  // Flattened, so that threads that do not wait are one loop around the kernel's body.
  [[gnu::flatten]] static void threads(const void* tuple) {
    const Tuple arguments = *static_cast<const Tuple*>(tuple);
    while (next_thread()) {
      std::apply(Kernel, arguments);
      thread_ended();
    }
  }

  static void run(const TwinLaunch& launch) {
    Tuple arguments;
    [&]<size_t... I>(std::index_sequence<I...>) {
      (std::memcpy(static_cast<void*>(&std::get<I>(arguments)), launch.parameters + kOffsets.values[I], kSizes[I]),
       ...);
    }
    (std::index_sequence_for<Arguments...>{});
    run_grid(launch, &threads, &arguments);
  }
};

template <auto Kernel>
class Registered {
 public:
  Registered()
      : twin_{reinterpret_cast<const void*>(Kernel),
              Thunk<Kernel>::kCount,
              Thunk<Kernel>::kOffsets.values,
              Thunk<Kernel>::kSizes,
              &Thunk<Kernel>::run,
              nullptr,
              library_twins} {
    library_twins = &twin_;
  }

 private:
  Twin twin_;
};

}  // namespace reprise::sim::twin

extern "C" __attribute__((visibility("default"), used)) inline const ::reprise::sim::Twin* reprise_twins_2() {
  return ::reprise::sim::twin::library_twins;
}

#define REPRISE_TWIN_JOIN2(a, b) a##b
#define REPRISE_TWIN_JOIN(a, b) REPRISE_TWIN_JOIN2(a, b)
// Makes a kernel, or one instantiation of a kernel template, known to the simulated device.
#define REPRISE_TWIN(...) \
  static const ::reprise::sim::twin::Registered<(__VA_ARGS__)> REPRISE_TWIN_JOIN(reprise_twin_, __COUNTER__)
// Defines what `extern __shared__ type name[];` declares, as large as a block may ask for.
#define REPRISE_TWIN_DYNAMIC_SHARED(type, name) thread_local type name[(227 << 10) / sizeof(type)]

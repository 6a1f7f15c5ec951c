// What a call of the driver takes of a device for itself: code that is loaded lazily, local memory, graphs. By what
// this process holds before and after it where that is told (own_memory.h); else by what the device has free, so that
// what other processes take just then counts, too. Callers: the replay's budget, the enforcer, and the forwarder, so
// that plans of a recording leave room for it.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <optional>

namespace reprise {

// As it is right before the call. `graphs`: device memory that counts as free, because it is counted elsewhere.
struct BeforeCall {
  uint64_t free = 0;  // 0: not known
  std::optional<uint64_t> own;
};
BeforeCall look_before_call(CUdevice device, uint64_t graphs = 0) noexcept;

// Right after it, in the thread that made it. A context of the device must be current each time.
struct TakenByCall {
  uint64_t bytes = 0;
  bool own = false;  // surely no other process's
};
TakenByCall taken_by_call(const BeforeCall& before, CUdevice device, uint64_t graphs = 0) noexcept;

// Code and local memory of one call: more is another process's doing. Where another process is known to take memory,
// what can only be its doing is more by far.
inline constexpr uint64_t kMostOfOneCall = 2ull << 30;
inline constexpr uint64_t kMostBesideOthers = 64ull << 20;

}  // namespace reprise

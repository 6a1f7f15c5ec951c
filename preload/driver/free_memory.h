// What a device has free, and what a call of the driver took of it for itself: code that is loaded lazily, local
// memory, graphs. Callers: the replay's budget, and the forwarder, so that plans of a recording leave room for it.
#pragma once
#include <cstdint>

namespace reprise {

// What the device has free for the current context, as all processes leave it; 0: not known.
uint64_t free_bytes() noexcept;

// Code and local memory of one call: more is another process's doing. Where another process is known to take memory,
// what can only be its doing is more by far.
inline constexpr uint64_t kMostOfOneCall = 2ull << 30;
inline constexpr uint64_t kMostBesideOthers = 64ull << 20;

// What a call of the driver has taken for itself, by what was free right before and right after it. What other
// processes take just then counts, too, so the two have to lie close together.
uint64_t taken_by_call(uint64_t free_before, uint64_t free_after, uint64_t most = kMostOfOneCall) noexcept;

}  // namespace reprise

// Positions in the program's order of calls over all threads. Callers: the hooks, one number per recorded call.
#pragma once
#include <atomic>
#include <cstdint>

namespace reprise {

// The next position, from 1. One atomic add; calls of one thread get rising numbers.
inline uint64_t next_sequence() noexcept {
  static constinit std::atomic<uint64_t> counter{0};
  return counter.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace reprise

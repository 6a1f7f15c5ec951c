#include "replay/issue/held_memory.h"

#include <algorithm>

namespace reprise::replay {
namespace {

constexpr int kLooks = 8;  // our chunks may come and go meanwhile

void raise(std::atomic<uint64_t>& most, uint64_t value) noexcept {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void raise_peak_with_held(Shared& shared) noexcept {
  Counters& counters = shared.counters;
  raise(counters.peak_with_held, counters.footprint_bytes.load(std::memory_order_relaxed) +
                                     counters.held_in_outside.load(std::memory_order_relaxed));
}

}  // namespace

uint64_t held_by_driver(const Shared& shared) noexcept {
  const uint64_t outside = shared.counters.outside_bytes.load(std::memory_order_relaxed);
  return outside - std::min(outside, shared.counters.held_in_outside.load(std::memory_order_relaxed));
}

void look_around(Shared& shared, ManagedMemory& memory) noexcept {
  Counters& counters = shared.counters;
  counters.look_again.store(false);
  for (int i = 0; i < kLooks; ++i) {
    const uint64_t ours = memory.chunks.bytes();
    shared.graphs.look(shared.device);
    const Outside::Answer answer = Outside::ask();
    if (memory.chunks.bytes() != ours && i + 1 < kLooks) continue;
    const uint64_t given = counters.given_bytes.load(std::memory_order_relaxed);
    const uint64_t outside = memory.outside.take(answer, ours, given + shared.graphs.bytes());
    const uint64_t by_calls = shared.beside.of(shared.device).now() + shared.graphs.bytes();
    const uint64_t held = std::min(outside, by_calls);
    counters.outside_bytes.store(outside, std::memory_order_relaxed);
    shared.around.hold(outside);
    counters.held_in_outside.store(held, std::memory_order_relaxed);
    raise(counters.most_outside, outside);
    raise(counters.most_held, held);
    raise_peak(shared, ours + outside);
    raise_peak_with_held(shared);
    shared.room.set(figures_of(memory.outside));
    return;
  }
}

void look_at_graphs(Shared& shared, ManagedMemory& memory) noexcept {
  if (!shared.graphs.any()) return;
  const uint64_t before = shared.graphs.bytes();
  shared.graphs.look(shared.device);
  if (shared.graphs.bytes() != before) look_around(shared, memory);
}

void set_footprint(Shared& shared, uint64_t bytes) noexcept {
  shared.counters.footprint_bytes.store(bytes, std::memory_order_relaxed);
  raise_peak_with_held(shared);
}

void held_before(Shared& shared, uint64_t bytes, uint64_t by_calls) noexcept {
  raise(shared.counters.held_before, bytes);
  raise(shared.counters.peak_used_bytes, bytes);
  raise(shared.counters.peak_with_held, by_calls);
  raise(shared.counters.most_held, by_calls);
}

uint64_t peak_beside_outside(const Shared& shared, uint64_t peak_footprint) noexcept {
  const Counters& counters = shared.counters;
  if (counters.most_held.load(std::memory_order_relaxed) == 0) return peak_footprint;
  const uint64_t peak = counters.peak_with_held.load(std::memory_order_relaxed);
  return peak - std::min(peak, counters.held_in_outside.load(std::memory_order_relaxed));
}

uint64_t peak_of_program(const Shared& shared) noexcept {
  const Counters& counters = shared.counters;
  const bool any = counters.most_held.load(std::memory_order_relaxed) != 0;
  return (any ? counters.peak_with_held : counters.peak_footprint_bytes).load(std::memory_order_relaxed) +
         held_by_driver(shared);
}

void raise_peak(Shared& shared, uint64_t bytes) noexcept { raise(shared.counters.peak_used_bytes, bytes); }

// What was taken for the program's own for a while, and was another one's, is in the peak and no longer in what is
// held.
uint64_t peak_used(const Shared& shared, bool others) noexcept {
  const Counters& counters = shared.counters;
  const uint64_t at_once = counters.peak_used_bytes.load(std::memory_order_relaxed);
  if (!others) return at_once;
  return std::min(at_once,
                  counters.peak_device_bytes.load(std::memory_order_relaxed) + outside_at_most(shared, others));
}

uint64_t outside_at_most(const Shared& shared, bool others) noexcept {
  return (others ? shared.counters.outside_bytes : shared.counters.most_outside).load(std::memory_order_relaxed);
}

}  // namespace reprise::replay

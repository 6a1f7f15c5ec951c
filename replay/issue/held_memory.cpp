#include "replay/issue/held_memory.h"

#include <algorithm>

namespace reprise::replay {
namespace {

uint64_t outside_without_graphs(const Counters& counters) noexcept {
  const uint64_t outside = counters.outside_bytes.load(std::memory_order_relaxed);
  return outside - std::min(outside, counters.graphs_in_outside.load(std::memory_order_relaxed));
}

void raise(std::atomic<uint64_t>& most, uint64_t value) noexcept {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void raise_peak_with_graphs(Shared& shared) noexcept {
  raise(shared.counters.peak_with_graphs,
        shared.counters.footprint_bytes.load(std::memory_order_relaxed) + shared.graphs.bytes());
}

}  // namespace

void look_at_graphs(Shared& shared) noexcept {
  if (!shared.graphs.any()) return;
  const uint64_t before = shared.graphs.bytes();
  shared.graphs.look(shared.device);
  if (shared.graphs.bytes() <= before) return;
  raise_peak(shared, shared.counters.device_bytes.load(std::memory_order_relaxed));
  raise_peak_with_graphs(shared);
}

void set_footprint(Shared& shared, uint64_t bytes) noexcept {
  shared.counters.footprint_bytes.store(bytes, std::memory_order_relaxed);
  raise_peak_with_graphs(shared);
}

uint64_t peak_beside_outside(const Shared& shared, uint64_t peak_footprint) noexcept {
  if (!shared.graphs.any()) return peak_footprint;
  const uint64_t peak = shared.counters.peak_with_graphs.load(std::memory_order_relaxed);
  return peak - std::min(peak, shared.counters.graphs_in_outside.load(std::memory_order_relaxed));
}

uint64_t peak_of_program(const Shared& shared) noexcept {
  const Counters& counters = shared.counters;
  const uint64_t of_tensors = shared.graphs.any() ? counters.peak_with_graphs.load(std::memory_order_relaxed)
                                                  : counters.peak_footprint_bytes.load(std::memory_order_relaxed);
  return of_tensors + outside_without_graphs(counters);
}

void raise_peak(Shared& shared, uint64_t chunk_bytes) noexcept {
  Counters& counters = shared.counters;
  raise(counters.peak_used_bytes, chunk_bytes + outside_without_graphs(counters) + shared.graphs.bytes());
}

// What was taken for the program's own for a while, and was another one's, is in the peak and no longer in what is
// held.
uint64_t peak_used(const Shared& shared) noexcept {
  const uint64_t outside = outside_at_most(shared);
  const uint64_t at_once = shared.counters.peak_used_bytes.load(std::memory_order_relaxed);
  if (shared.graphs.most_bytes() != 0) return std::max(at_once, outside);
  return std::min(at_once, shared.counters.peak_device_bytes.load(std::memory_order_relaxed) + outside);
}

uint64_t outside_at_most(const Shared& shared) noexcept {
  return outside_without_graphs(shared.counters) + shared.graphs.most_bytes();
}

}  // namespace reprise::replay

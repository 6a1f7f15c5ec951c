#include "preload/driver/taken.h"

#include <algorithm>

#include "preload/driver/free_memory.h"
#include "preload/driver/own_memory.h"

namespace reprise {
namespace {
uint64_t growth(uint64_t from, uint64_t to) noexcept { return to - std::min(from, to); }
}  // namespace

BeforeCall look_before_call(CUdevice device, uint64_t graphs) noexcept {
  BeforeCall before;
  const uint64_t free = free_bytes();
  if (free == 0) return before;
  before.free = free + graphs;
  if (const auto own = own_bytes(device); own) before.own = growth(graphs, *own);
  return before;
}

TakenByCall taken_by_call(const BeforeCall& before, CUdevice device, uint64_t graphs) noexcept {
  const uint64_t free = before.free != 0 ? free_bytes() : 0;
  if (free == 0) return {};
  const uint64_t after = free + graphs;
  if (before.own && after != before.free) {
    const auto own = own_bytes(device);
    if (own && own_bytes_follow(device)) return {growth(*before.own, growth(graphs, *own)), true};
  }
  return {std::min(growth(after, before.free), kMostOfOneCall), after == before.free};
}

}  // namespace reprise

// Placement: which physical chunks a tensor's stays occupy. Every tensor has one home for the whole plan, so that the
// steady state maps nothing; where no home exists, single stays are placed elsewhere (a remap). The lives of a tensor
// that is recomputed count as stays of one tensor: they have one address.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyzer/schedule/schedule.h"

namespace reprise::analyzer {

struct Layout {
  std::vector<plan::Placement> placements;
  std::vector<uint32_t> homes;               // tensor -> index into placements; kNone: it has no stay
  uint32_t chunk_count = 0;                  // chunks in use, numbered from 0
  std::vector<uint32_t> device_chunks = {};  // as in the plan
  uint32_t remap_count = 0;                  // stays that find their tensor's range mapped elsewhere
  uint64_t remapped_chunks = 0;              // of all these stays
};

// How hard to try: one chunk set per tensor; or single stays elsewhere where a tensor finds no home, homes first; or
// stays in order of their beginning, which always succeeds when no stay wraps and the schedule keeps to `chunks`.
enum class PlacementMode : uint8_t { homes, homes_then_stays, by_begin };

// Which tensors get a home first, after those that never leave. Longest: by the time spent on the device, which finds
// homes where other orders do not. Returning: those with several stays; persistent: those before transient ones; both
// then by the beginning of the first stay. They sometimes give the faster plan.
enum class HomeOrder : uint8_t { longest_first, returning_first, persistent_first };

// Chooses chunks out of `chunks` and sets Stay::placement of every stay. Rule: chunks whose whole cyclic future is free
// for the tensor, those with the widest slack before and after its stays first. nullopt: some tensor found none.
// `start_ns`: when each call starts, strictly rising, and one more at the end, for what is slack and what is long;
// empty: as recorded, as if nothing had to be waited for.
std::optional<Layout> place(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, PlacementMode mode,
                            HomeOrder order = HomeOrder::longest_first, const std::vector<uint64_t>& start_ns = {});

// Homes anew for `moved`, in this order, while all other tensors keep theirs; of a tensor with several lives the first
// is named. `layout`: of place() for this schedule and as many chunks, on one device, with homes alone. nullopt: one of
// them found none.
std::optional<Layout> place_again(const TaskGraph& graph, Schedule& schedule, uint32_t chunks, const Layout& layout,
                                  std::span<const uint32_t> moved, const std::vector<uint64_t>& start_ns);

// The offsets of small transient tensors in the plan's slab region, first fit over their lifetimes at multiples of 512
// bytes, never over a chunk's end. Sets Tensor::slab_offset; returns the bytes of the region (of several devices', the
// largest).
uint64_t place_small_tensors(TaskGraph& graph);

}  // namespace reprise::analyzer

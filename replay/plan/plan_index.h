// A plan as the dispatcher and the matcher need it: addresses of the plan's own tensors, successors instead of
// predecessors, and for each vertex which others it must wait for on the device. Built once per plan by
// make_plan_index, read only after that.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "replay/memory/addresses/ranges.h"
#include "replay/plan/free_windows.h"

namespace reprise::replay {

enum class LaneKind : uint8_t { compute, to_device, to_host, none };  // none: releases
inline constexpr int kLaneKinds = 3;

struct Edge {
  uint32_t vertex;
  uint8_t distance;  // iterations between the two
};

// A launch that the plan makes twice: what it wrote is dropped in between.
struct Repeat {
  uint32_t first = 0;               // vertex of the program's launch
  uint32_t again = 0;               // vertex that repeats it
  std::vector<uint32_t> unchanged;  // tensors that hold the same before and after it: inputs, small outputs
  // Of these: dropped and made again themselves, so that once a repeat was right their own digests are enough.
  std::vector<uint32_t> shown = {};
  std::vector<uint32_t> outputs = {};  // chunked tensors that it makes again
};

// What waits for what, by vertex.
struct PlanOrder {
  std::vector<uint32_t> rank;  // position in plan.order
  std::vector<LaneKind> lanes;
  std::vector<uint32_t> predecessors;  // how many of distance 0
  std::vector<uint32_t> cyclic;        // how many of distance 1
  std::vector<std::vector<Edge>> successors;
  // Issued work (releases looked through) to wait for. Of ops, also what was on the same stream when it was recorded:
  // the program may use others by now.
  std::vector<std::vector<Edge>> waits;
  std::vector<bool> waited_for;  // work on another lane waits for it, if streams are as recorded
};

// Where its own tensors lie, and what becomes of them, by tensor.
struct PlanTensors {
  Zone zone;                // the part of the arena that plans share: small tensors first
  Zone ranges;              // ... and in it the ranges that are this plan's alone
  uint64_t slab_bytes = 0;  // of small transient tensors, padded to chunks
  uint32_t persistent_count = 0;
  // Of transient ones. 0 for persistent ones, but for small ones that are handed over where sizes vary: the next one
  // lies here, wherever the first one is.
  std::vector<uint64_t> addresses;
  std::vector<bool> offloaded;     // has an offload vertex
  std::vector<bool> leaves_again;  // may be offloaded twice with the same bytes
  // Transient ones, for strict safety: its range may stay mapped while it is there and between its free and its first
  // use in the next iteration, because no other tensor has its chunks at a time when unseen work might touch it.
  std::vector<bool> keeps_mapping;
  // For audited safety where some ops are not audited: its range stays mapped while its bytes are away.
  std::vector<bool> aliased;
};

// Recompute (lives.h), by vertex.
struct PlanRepeats {
  std::vector<Repeat> repeats;        // in the order of the program's launches
  std::vector<bool> ours;             // no call of the program makes it ready
  std::vector<uint32_t> repeated_by;  // the repeat that it begins with
  std::vector<uint32_t> repeat_of;    // ... that it is
  std::vector<bool> drops;            // it drops a tensor that a repeat makes again
  std::vector<uint32_t> drop_launch;  // of a drop, the launch that made the tensor
};

struct PlanIndex : PlanOrder, PlanTensors, PlanRepeats {
  // A persistent tensor whose next one, in a handover, lies in the plan's own region.
  bool moves_in_handover(uint32_t tensor) const noexcept { return tensor < persistent_count && addresses[tensor] != 0; }
  plan::Plan plan;
  bool is_guess = false;              // kept from an earlier run, and not in force yet: it may not fit
  bool as_trusted = false;            // audited safety, and all ops are
  bool remaps = false;                // a tensor comes to other chunks than those of its home
  uint32_t last_call = 0;             // of the program
  uint32_t last_work = 0;             // ... that is no free; last_call, where all are
  std::vector<uint32_t> next_call;    // by call: the program's next one
  std::vector<FreeWindow> windows;    // by call
  std::vector<uint32_t> early_frees;  // calls, ascending: frees that may come before their turn
};

// Gives the plan's own tensors addresses in `zone` and inverts the edges: small ones at its beginning, large ones from
// `ranges_at` bytes behind it on (0: right behind the small ones), for other plans may have what lies before. False,
// with one line in *why, when the plan does not fit this device (chunk size, address space) or could not be enforced
// safely (small tensors alive at the same time at the same place).
bool make_plan_index(plan::Plan plan, Zone zone, uint64_t chunk_bytes, PlanIndex* plan_index, std::string* why,
                     plan::Safety safety = plan::Safety::trusted, uint64_t ranges_at = 0);

}  // namespace reprise::replay

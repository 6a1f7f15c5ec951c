// The serial walk over one iteration that decides what is resident when: TURNIP's BUILDMEMGRAPH (Figures 8 and 9),
// generalised to tensors of many chunks (any free chunks do, so it only counts them) and to a cyclic iteration, and
// corrected: an op's operands are pinned until it has run, memory is freed after the op and not between its inputs,
// reloads are listed at need instead of by a greedy allocation horizon, a host copy stays valid until the next write.
// Called by the policies, which only choose victims.
#pragma once
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/schedule/schedule.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

// No use before the program frees the tensor.
inline constexpr uint64_t kNever = ~uint64_t{0};

// What a chooser may look at.
struct WalkState {
  struct TensorState {
    bool resident = false;
    HostCopy host = HostCopy::stale;
    bool pinned = false;         // operand of the op at hand
    bool carried = false;        // resident since the previous iteration
    uint32_t begin = 0;          // of the stay, unless carried
    uint32_t last = kNone;       // last access in this stay and iteration
    uint64_t next_use = kNever;  // call index, counted on into the next iteration
  };
  const TaskGraph* graph = nullptr;
  std::vector<TensorState> tensors;
  std::set<std::pair<uint64_t, uint32_t>> by_next_use;  // resident chunked tensors: (next use, tensor)
  // The same tensors, least recently used first, then by number: a ring through one more place than there are tensors.
  std::vector<uint32_t> older, newer;
  std::vector<uint64_t> start_ns;  // call -> sum of the durations before it
  CallIndex call{0};               // at hand
  uint64_t free_chunks = 0;

  uint32_t chunks(uint32_t tensor) const { return graph->tensors[tensor].chunk_count; }
};

struct Leaving {
  uint32_t tensor = kNone;
  Tier tier = Tier::host;
};

class VictimChooser {
 public:
  virtual ~VictimChooser() = default;
  // A new pass over the iteration begins.
  virtual void start(const WalkState& /*state*/) {}
  // Asked after every op: resident tensors that leave right behind it, though no op needs their memory yet.
  virtual std::vector<Leaving> leaving(const WalkState& /*state*/) { return {}; }
  // Resident tensors that are not pinned and together have at least `needed` chunks. Such a set exists.
  virtual std::vector<uint32_t> choose(const WalkState& state, uint64_t needed) = 0;
};

// Drops members, those that are needed soonest first, as long as the rest has `needed` chunks. `victims` must stand in
// falling order of next use.
void spare_superfluous(const WalkState& state, uint64_t needed, std::vector<uint32_t>& victims);

// Victims with `needed` chunks or more, least recently used first.
std::vector<uint32_t> least_recently_used(const WalkState& state, uint64_t needed);

// Copies begin as early as data and memory allow.
inline constexpr uint32_t kAnyLead = kNone;

struct WalkOptions {
  uint64_t capacity = 0;       // chunks; at least the largest working set
  bool carry_visitors = true;  // false: persistent tensors either never leave the device or are away at the start
  // A copy in for an op, or out to make room for it, begins when all but this many of the ops before it are done; 0: on
  // demand.
  uint32_t lead = kAnyLead;
};

// Walks until the state at the end is that at the start.
Schedule walk(const TaskGraph& graph, const WalkOptions& options, VictimChooser& chooser);

}  // namespace reprise::analyzer

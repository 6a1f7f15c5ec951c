// A schedule: when which chunked tensor is on the device, in the serial order of the recorded iteration. What policies
// make; placement gives each stay its chunks, build.h turns both into the MemGraph.
//
// The life of a persistent tensor that is away once in an iteration. Its one stay wraps: it begins at call 7, goes on
// over the iteration's start, and ends at call 4.
//
//   call       0    1    2    3    4    5    6    7    8    9    |  0    1    2    3    4    5
//   used by         read      write               read           |       read      write
//   stay       ====================     away      ===============|======================
//   copies                         offload  reload               |                      offload
//   chunks     home                other tensors' home           |  home                other tensors'
//   host copy  valid          stale        valid                 |  valid          stale
//
// `departure` is offload here, for an op wrote the tensor; after reads alone the host copy is still valid and it would
// be drop, and guarded if only kernel facts say that they were reads. A policy, or retime.h, may lengthen a stay over
// its copies: the end to offload_end, the begin to reload_begin.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

enum class Arrival : uint8_t {
  first_touch,  // a transient tensor's first op finds empty memory
  reload,       // from the host copy, just before call `begin`
  always,       // a persistent tensor that never leaves
};

enum class Departure : uint8_t {
  release,  // the program's free, at call `end`
  offload,  // copied to the host after its last access
  drop,     // the host copy is still valid
  guarded,  // ... as far as kernel facts say: an offload that only compares, and copies where the bytes differ
  never,
};

// The host's copy of a tensor. by_facts: valid as far as kernel facts say. In order: what is worse comes first.
enum class HostCopy : uint8_t { stale, by_facts, valid };

// How a tensor leaves whose bytes are still needed.
inline Departure departure_with(HostCopy copy) {
  if (copy == HostCopy::stale) return Departure::offload;
  return copy == HostCopy::valid ? Departure::drop : Departure::guarded;
}
// Does it take a vertex of the plan?
inline bool has_offload(Departure departure) {
  return departure == Departure::offload || departure == Departure::guarded;
}

// Where the copy of what is away lies.
enum class Tier : uint8_t { host, ssd };

// One uninterrupted time of a tensor on the device, half open in call indices. A stay that wraps begins in one
// iteration and ends in the next (end <= begin, both below the number of calls): its tensor is resident at the
// iteration's start.
struct Stay {
  uint32_t tensor = kNone;
  uint32_t begin = 0;
  uint32_t end = 0;  // behind the last access, or the free's call
  Arrival arrival = Arrival::reload;
  Departure departure = Departure::drop;
  bool wraps = false;
  bool clean_at_start = false;  // wraps or always: the host copy is valid at the iteration's start, without facts
  Tier to = Tier::host;         // of an offload: what a policy wishes; tiers.h decides
  Tier from = Tier::host;       // of a reload; tiers.h sets it
  bool not_to_ssd = false;      // of an offload: as long as there is room on the host
  // Ops (calls) that must be done before the copy in or out begins, for systems that move memory when it is asked for;
  // kNone: none. A call that does not stand before the copy means the one of the iteration before.
  uint32_t arrives_after = kNone;
  uint32_t leaves_after = kNone;
  uint64_t fault_ns = 0;       // what the copy in takes besides its bytes and the link's latency
  uint32_t placement = kNone;  // index into Layout::placements; placement sets it
};

struct Schedule {
  std::vector<Stay> stays;  // by begin, then tensor
  uint64_t offload_bytes = 0;
  uint64_t reload_bytes = 0;
};

inline void sort_stays(Schedule& schedule) {
  std::sort(schedule.stays.begin(), schedule.stays.end(),
            [](const Stay& a, const Stay& b) { return std::pair(a.begin, a.tensor) < std::pair(b.begin, b.tensor); });
}

// With the stays sorted and their bytes counted.
inline Schedule schedule_of(const TaskGraph& graph, std::vector<Stay> stays) {
  Schedule schedule;
  schedule.stays = std::move(stays);
  sort_stays(schedule);
  for (const Stay& stay : schedule.stays) {
    const uint64_t size = graph.tensors[stay.tensor].size;
    if (stay.arrival == Arrival::reload) schedule.reload_bytes += size;
    if (stay.departure == Departure::offload) schedule.offload_bytes += size;
  }
  return schedule;
}

}  // namespace reprise::analyzer

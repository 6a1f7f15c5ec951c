// How long the device has nothing to run although the program has submitted work, for the run log's stall_ns. The host
// sees that at its looks alone: in each step, and before an op is issued behind what has held the host up.
//
//     looks     |           |  map, map  |  map, map  | issue      |
//     device      ---- op A ------|                     - op B ----
//     counted               |   a half   |    all     |  nothing
//
// That an op has ended shows at a marker behind it, so none may stand behind what the next op waits for: then the lane
// would look busy as long as it waits. Caller: the plan executor.
#pragma once
#include <cstdint>
#include <vector>

#include "replay/memory/memory.h"
#include "replay/progress/held_ops.h"
#include "replay/progress/progress.h"
#include "replay/progress/stopwatch.h"

namespace reprise::replay {

// Which entries of the log the plan executor has taken in.
struct Intake {
  uint64_t next = 0;        // log position of the next one
  uint64_t seen_tail = 0;   // end of the log when step() looked
  uint64_t polls_seen = 0;  // ... and so often the program had asked in vain
  bool behind() const noexcept { return next != seen_tail; }
};

// An op that a program thread is about to issue.
struct GrantedOp {
  Instance instance;
  LaneIndex lane;
};

class Stalls {
 public:
  static constexpr uint64_t kMapSlice = 8;  // chunks that are mapped before ops are looked at again

  Stalls(ManagedMemory* memory, const Progress* progress, const Intake* intake, const std::vector<GrantedOp>* granted,
         Stopwatch* stopwatch) noexcept
      : memory_(*memory), progress_(*progress), intake_(*intake), granted_(*granted), stopwatch_(*stopwatch) {}

  // A plan comes in force.
  void begin() noexcept;
  bool any_held() const noexcept { return !held_.empty(); }

  // Before the lane is told to wait for this: what is issued to it next is held. So is what the driver keeps in order
  // behind something that is held.
  void hold(LaneIndex lane, LaneUses awaited) noexcept;
  // What is issued to the lane next waits for this, and nothing else does.
  void hold_next(LaneIndex lane, const LaneUses& awaited) noexcept { held_.add(next_on(lane), awaited); }
  // The program's events: a wait for one is a wait for all that was on the other lane when it was recorded, which may
  // be more than what the program had called.
  void event_recorded(const LogEntry& entry) noexcept;
  void hold_for_event(const LogEntry& entry) noexcept;

  void look() noexcept;
  // An op is about to be issued. Mapping has held the host up since the last look, or the op ends a stall.
  void look_before_issue() noexcept;
  void look_behind_issue() noexcept;

  // What Mappings::map() does, in pieces, so that it shows when the device comes to its end meanwhile.
  CUresult map(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept;
  // Access to as much of the range as takes a little while: the driver takes its time for each chunk, of which a large
  // tensor has hundreds.
  CUresult grant_some(CUdeviceptr base) noexcept;

 private:
  LaneUse next_on(LaneIndex lane) noexcept;
  bool runs_dry() noexcept;

  ManagedMemory& memory_;
  const Progress& progress_;
  const Intake& intake_;
  const std::vector<GrantedOp>& granted_;
  Stopwatch& stopwatch_;
  HeldOps held_;
  struct Recorded {
    CUevent event;
    LaneUse at;
  };
  std::vector<Recorded> recorded_;    // events of the program behind work that may not be complete
  uint64_t looked_ns_ = 0;            // when the device was looked at last, 0: never
  bool was_dry_ = false;              // and then it had nothing to run
  uint64_t looked_at_calls_ = 0;      // ... and so many calls for mappings had been made
  uint64_t chunk_grant_ns_ = 25'000;  // that access to a chunk takes; to begin with, what it did on an H200
};

}  // namespace reprise::replay

// The account of one device's memory over the whole run: the budget; our chunks, and what the program holds around
// them, as the driver tells it each time that either may have changed; what the program would take without us; the most
// of each. It outlives the sessions of the device. Callers: the dispatcher and the issuer, behind what makes the driver
// take memory; the session and the enforcer, behind the program's own calls and at its end.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "preload/base/config.h"
#include "preload/driver/graph_memory.h"
#include "replay/issue/common.h"
#include "replay/issue/device_room.h"
#include "replay/memory/around.h"
#include "replay/memory/memory.h"

namespace reprise::replay {

// Numbers for memory information and the run log; each is written by one thread and read by any.

// What the run log's last line has as it is.
struct LoggedCounters {
#define RUN_LOG_COUNTER(name, unit, help) std::atomic<uint64_t> name{0};
#include "preload/base/run_log_keys.def"
};

// What the program has asked for and not freed.
struct FootprintCounters {
  std::atomic<uint64_t> requested_bytes{0};  // as the program asked
  std::atomic<uint64_t> footprint_bytes{0};  // what that takes of the device without us
  std::atomic<uint64_t> in_chunks_bytes{0};  // the same, as we serve it
  std::atomic<uint64_t> peak_in_chunks_bytes{0};
  std::atomic<uint64_t> peak_with_held{0};  // of the footprint and of what calls made around us, at once
};

// What of the device is ours, and may be.
struct ChunkCounters {
  std::atomic<uint64_t> limit_chunks{0};
  std::atomic<uint64_t> budget_chunks{0};        // the limit without what other programs hold of the device
  std::atomic<uint64_t> device_bytes{0};         // physical chunks that exist
  std::atomic<uint64_t> peak_used_bytes{0};      // of chunks and of what is held around them at once
  std::atomic<uint64_t> room_bytes{UINT64_MAX};  // that ours may have of the device, whatever the budget says
  std::atomic<uint64_t> largest_working_set{0};  // chunks
  std::atomic<uint64_t> raised_bytes{0};         // what a plan takes at least, where a percentage is less; else 0
  std::atomic<uint64_t> least_budget_bytes{0};   // that the planner asks for, where the budget is below; else 0
};

// What the program holds of the device around Reprise.
struct AroundCounters {
  std::atomic<uint64_t> outside_bytes{0};
  std::atomic<uint64_t> most_outside{0};
  std::atomic<uint64_t> held_before{0};      // at most before memory was managed
  std::atomic<uint64_t> held_in_outside{0};  // of it, made by calls that hooks saw, and of graphs
  std::atomic<uint64_t> most_held{0};        // the most of that
  std::atomic<uint64_t> given_bytes{0};      // that hooks saw it get from the driver, ever
  std::atomic<bool> look_again{false};       // it may have changed unseen
};

// How often what happened.
struct EventCounters {
  std::atomic<uint64_t> iterations_on_demand{0};  // while there is no plan: of whatever repeats
  std::atomic<uint64_t> loops_on_demand{0};       // of the loops that have plans
  std::atomic<uint64_t> loops_unfinished{0};      // those that the program left when they were more than half over
  std::atomic<uint64_t> divergences{0};
  std::atomic<uint64_t> shortages{0};  // calls that were told of too little memory, with a message
  std::atomic<uint64_t> polls{0};      // queries that were answered "not ready" for a deferred call
};

struct Counters : LoggedCounters, FootprintCounters, ChunkCounters, AroundCounters, EventCounters {};

// What was moved, and how often memory was mapped.
struct Moved {
  Traffic traffic;
  uint64_t vmm_calls = 0;
  void add(const ManagedMemory& memory) noexcept {
    traffic.add(memory.traffic);
    vmm_calls += memory.mappings.driver_calls();
  }
};

class Account {
 public:
  explicit Account(const Common& common, uint64_t fixed_budget = 0) noexcept
      : common_(common), fixed_budget_(fixed_budget) {}

  // The device's memory begins to be managed, while the program holds `held` of it. A context must be current.
  void open(const Config& config, CUdevice device, uint64_t held) noexcept;
  // The program ends, and its memory was never managed.
  void never_opened(CUdevice device) noexcept;
  // A context has ended: nothing of ours is on the device any more.
  void close(const ManagedMemory& memory) noexcept;

  // The budget as it is now. Any thread, once memory is managed.
  BudgetRule rule() const noexcept;
  // ... in bytes, for a program whose peak was `peak_bytes`.
  uint64_t known(uint64_t peak_bytes, uint64_t outside_bytes = 0) const noexcept {
    return budget_in_bytes(rule(), peak_bytes, outside_bytes);
  }
  // 0: a percentage, or not known yet.
  uint64_t fixed_budget() const noexcept { return fixed_budget_.load(std::memory_order_relaxed); }

  // Asks the driver what is held around our chunks, and keeps what follows. Any thread; a context of the managed device
  // must be current.
  void look_around(ManagedMemory& memory) noexcept;
  // Asks what graphs hold, where any can hold something, and around them where that has changed.
  void look_at_graphs(ManagedMemory& memory) noexcept;

  // What the program would take of the device without us is so much now, beside what it holds around us: is it the most
  // so far?
  void set_footprint(uint64_t bytes) noexcept;
  // What a percentage is of, without what is held around Reprise now: of `peak_footprint`, where no call ever made any
  // of that. Else what was most at once may have been gone before it came.
  uint64_t peak_beside_outside(uint64_t peak_footprint) const noexcept;
  // The most that the program would take of the device without us.
  uint64_t peak_of_program() const noexcept;
  // Our chunks, and what is held around them, were this much at once: is it the most so far?
  void raise_peak(uint64_t bytes) noexcept;
  // A call that got no memory was told that a budget of so much is needed.
  void told_least(uint64_t bytes) noexcept;
  // The most that was used of the device, chunks and what is held around them, as far as that was seen at once.
  uint64_t peak_used(bool others) const noexcept;
  // The most that was held around Reprise. Where others were seen to take memory, what it was when the driver was asked
  // last.
  uint64_t outside_at_most(bool others) const noexcept;
  // What of the things that are held around us now no call of the program has made: context, code and so on.
  uint64_t held_by_driver() const noexcept;

  Counters counters;
  GraphMemory graphs;
  Around around;
  DeviceRoom room;
  BudgetRule budget;                    // as it was asked for; rule() knows more
  Moved moved;                          // in contexts that have ended
  std::atomic<bool> refused{false};     // an allocation was, with a line that says what it lacks
  std::atomic<uint64_t> least_told{0};  // the largest budget that such lines ask for

 private:
  void take_held_before(uint64_t held) noexcept;
  void raise_peak_with_held() noexcept;

  const Common& common_;
  CUdevice device_ = 0;
  std::atomic<uint64_t> fixed_budget_;
};

}  // namespace reprise::replay

// What program threads and the dispatcher share. One per process, made by the enforcer, never destroyed.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "preload/driver/beside.h"
#include "preload/driver/graph_memory.h"
#include "preload/landing/landing.h"
#include "preload/record/activity/source.h"
#include "replay/base/run_log.h"
#include "replay/issue/device_room.h"
#include "replay/memory/around.h"
#include "replay/memory/ranges.h"
#include "replay/memory/tiers/host.h"
#include "replay/plan/plan_index.h"
#include "replay/queue/command_log.h"
#include "replay/queue/events.h"
#include "replay/queue/faults.h"
#include "replay/queue/staging.h"

namespace reprise::replay {

// Numbers for memory information and the run log; each is written by one thread and read by any.
struct Counters {
  std::atomic<uint64_t> requested_bytes{0};  // live, as the program asked
  std::atomic<uint64_t> peak_requested_bytes{0};
  std::atomic<uint64_t> peak_footprint_bytes{0};  // what that takes of the device without us
  std::atomic<uint64_t> footprint_bytes{0};       // ... and takes now
  std::atomic<uint64_t> in_chunks_bytes{0};       // the same, as we serve it
  std::atomic<uint64_t> peak_in_chunks_bytes{0};
  std::atomic<uint64_t> peak_with_held{0};  // of the footprint and of what calls made around us, at once
  std::atomic<uint64_t> limit_chunks{0};
  std::atomic<uint64_t> budget_chunks{0};  // the limit without what other programs hold of the device
  std::atomic<uint64_t> device_bytes{0};   // physical chunks that exist
  std::atomic<uint64_t> peak_device_bytes{0};
  std::atomic<uint64_t> outside_bytes{0};        // device memory that the program holds around Reprise
  std::atomic<uint64_t> most_outside{0};         // ... at most
  std::atomic<uint64_t> held_before{0};          // ... and at most before memory was managed
  std::atomic<uint64_t> held_in_outside{0};      // of them, made by calls that hooks saw, and of graphs
  std::atomic<uint64_t> most_held{0};            // ... at most
  std::atomic<uint64_t> peak_used_bytes{0};      // of chunks and of what is held around them at once
  std::atomic<bool> look_again{false};           // what is held around us may have changed unseen
  std::atomic<uint64_t> room_bytes{UINT64_MAX};  // that ours may have of the device, whatever the budget says
  std::atomic<uint64_t> given_bytes{0};          // ... that hooks saw it get from the driver, ever
  std::atomic<uint64_t> largest_working_set{0};  // chunks
  std::atomic<uint64_t> iterations_planned{0};
  std::atomic<uint64_t> iterations_on_demand{0};  // while there is no plan: of whatever repeats
  std::atomic<uint64_t> loops_on_demand{0};       // of the loops that have plans
  std::atomic<uint64_t> loops_unfinished{0};      // ... that the program left when they were more than half over
  std::atomic<uint64_t> divergences{0};
  std::atomic<uint64_t> shortages{0};           // calls that were told of too little memory, with a message
  std::atomic<uint64_t> raised_bytes{0};        // what a plan takes at least, where a percentage is less; else 0
  std::atomic<uint64_t> least_budget_bytes{0};  // that the planner asks for, where the budget is below; else 0
  std::atomic<uint64_t> polls{0};               // queries that were answered "not ready" for a deferred call
};

// Plans of one run: each is looked at where one may begin, and has its part of the arena. Two of a loop: the first one,
// and the one that takes its place.
inline constexpr uint32_t kMostPlans = 128;

// Words that one thread leaves for another, off the hot path.
class Note {
 public:
  void set(const std::string& text) noexcept {
    const std::lock_guard lock(mutex_);
    text_ = text;
  }
  std::string get() const noexcept {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

struct Shared {
  CommandLog command_log;
  Events events;
  Faults faults;
  Staging staging;
  Landing landing{ReadBack::kMostBytes};
  Addresses addresses;
  RunLogWriter run_log;
  Counters counters;
  GraphMemory graphs;  // of the managed device
  BesideLedgers beside;
  Around around;
  BudgetRule budget;  // set before memory is managed; budget_of() knows more
  DeviceRoom room;
  HostTier* host = nullptr;
  CUcontext context = nullptr;  // the managed one
  CUdevice device = 0;
  uint64_t chunk_bytes = 0;
  uint64_t granularity = 0;  // of the driver: what the program would take without us is counted by it
  // By device: others that the program has allowed to reach its memory, a bit each.
  std::array<std::atomic<uint64_t>, 64> peers{};
  plan::Safety safety = plan::Safety::strict;
  bool strict = false;  // on demand, where audited safety is strict, too; false: trusted
  Arena arena;
  Zone arena_all;
  std::atomic<int> captures{0};                    // stream captures of the program that are open, or about to be
  std::atomic<ActivitySource*> activity{nullptr};  // not nullptr: device times are wanted
  std::atomic<bool> recording{false};   // device times are kept by the calls' sequence numbers, for the trace
  std::atomic<bool> sampling{false};    // ... and of an iteration of a plan, for the run log
  std::atomic<bool> collecting{false};  // somebody takes device times from `activity`, which one may at a time

  // The plans that `activate` entries mean, by number. Each is set once by the enforcer, before the first that means
  // it.
  std::array<std::atomic<const PlanIndex*>, kMostPlans> plans{};
  // How often the dispatcher itself has left the plan or could not enter it; the plan follower stops matching when the
  // number moves.
  std::atomic<uint64_t> dispatcher_divergences{0};
  Note refusal;  // why the plan that was to come in force last could not; empty: it could, or none was to
  std::atomic<bool> refused_for_room{false};                  // ... with more memory it might have
  std::array<std::atomic<bool>, kMostPlans> plan_unusable{};  // by plan: activation is impossible for good
  std::atomic<bool> facts_failed{false};  // what a plan does by facts cannot be done, or did something else
};

// The budget as it is now. Any thread, once memory is managed.
inline BudgetRule budget_of(const Shared& shared) noexcept {
  BudgetRule rule = shared.budget;
  rule.least_bytes = shared.counters.raised_bytes.load(std::memory_order_relaxed);
  return rule;
}

}  // namespace reprise::replay

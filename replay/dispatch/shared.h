// What program threads and the dispatcher share. One per process, made by the enforcer, never destroyed.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "preload/record/activity/source.h"
#include "replay/base/run_log.h"
#include "replay/memory/addresses.h"
#include "replay/memory/ranges.h"
#include "replay/memory/tiers/host.h"
#include "replay/plan/plan_index.h"
#include "replay/queue/command_log.h"
#include "replay/queue/events.h"
#include "replay/queue/faults.h"
#include "replay/queue/staging.h"

namespace reprise::replay {

// The simulated device cannot know the extents of allocations that are carved out of an arena.
struct DeviceNotes {
  void (*note)(uint64_t address, uint64_t bytes) = nullptr;
  void (*forget)(uint64_t address) = nullptr;
};

// Numbers for memory information and the run log; each is written by one side and read by any.
struct Counters {
  std::atomic<uint64_t> requested_bytes{0};  // live, as the program asked
  std::atomic<uint64_t> peak_requested_bytes{0};
  std::atomic<uint64_t> limit_chunks{0};
  std::atomic<uint64_t> device_bytes{0};  // physical chunks that exist
  std::atomic<uint64_t> peak_device_bytes{0};
  std::atomic<uint64_t> outside_bytes{0};        // what the program created around Reprise
  std::atomic<uint64_t> largest_working_set{0};  // chunks
  std::atomic<uint64_t> iterations_planned{0};
  std::atomic<uint64_t> iterations_passive{0};
  std::atomic<uint64_t> divergences{0};
  std::atomic<uint64_t> polls{0};  // queries that were answered "not ready" for a deferred call
};

struct Shared {
  Log log;
  Events events;
  Faults faults;
  Staging staging;
  Addresses addresses;
  RunLogWriter runlog;
  Counters counters;
  HostTier* host = nullptr;
  CUcontext context = nullptr;  // the managed one
  CUdevice device = 0;
  uint64_t granularity = 0;
  Arena arena;
  Zone arena_all;
  DeviceNotes notes;
  std::atomic<ActivitySource*> activity{nullptr};  // set while device times are wanted
  std::atomic<bool> recording{false};              // then by the calls' sequence numbers

  // The plan that `activate` entries mean. Set once by the enforcer before the first of them.
  std::atomic<const Schedule*> schedule{nullptr};
  // Counts how often the dispatcher left the plan by itself; the enforcer stops matching when it moves.
  std::atomic<uint64_t> plan_exits{0};
  // The program repeats itself and no plan will come: a percentage budget's bytes are known, nothing raises them.
  std::atomic<bool> budget_settled{false};
  std::atomic<bool> plan_unusable{false};  // activation is impossible for good
};

}  // namespace reprise::replay

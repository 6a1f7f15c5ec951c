// What the sessions of one process share: its run log, its device times, and what its calls did before any device's
// memory was managed. Made once by the enforcer.
#pragma once
#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "preload/driver/beside.h"
#include "preload/driver/graph_memory.h"
#include "preload/driver/own_memory.h"
#include "preload/record/activity/source.h"
#include "replay/base/run_log.h"

namespace reprise::replay {

struct Common {
  // What the program holds of a device before Reprise manages memory there. A context of the device must be current.
  uint64_t held_on(CUdevice device) const noexcept {
    const uint64_t taken = taken_before[BesideLedgers::index(device)].load();
    return held_by_process(device, beside.of(device).now() + taken + graph_bytes(device));
  }

  RunLogWriter run_log;
  const uint64_t started_ns = RunLogWriter::now_ns();
  BesideLedgers beside;
  // By device: taken by the driver before its memory was managed, by calls around which we have looked.
  std::array<std::atomic<uint64_t>, BesideLedgers::kDevices + 1> taken_before{};
  // By device: others that the program has allowed to reach its memory, a bit each.
  std::array<std::atomic<uint64_t>, 64> peers{};
  std::atomic<int> captures{0};                    // stream captures that are open, or about to be
  std::atomic<bool> launched{false};               // something, before memory was managed
  std::atomic<ActivitySource*> activity{nullptr};  // not nullptr: device times are wanted
  std::atomic<bool> recording{false};   // device times are kept by the calls' sequence numbers, for the trace
  std::atomic<bool> sampling{false};    // ... and of an iteration of a plan, for the run log
  std::atomic<bool> collecting{false};  // somebody takes device times from `activity`, which one may at a time
};

}  // namespace reprise::replay

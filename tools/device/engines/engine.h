// What a device can do at the same time: one kernel, one copy in each direction, one copy or memset within the device.
// An operation waits in line for its engine; the busy times count what really ran. Callers: operations on stream
// threads.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "tools/device/base/operation.h"
#include "tools/device/engines/clock.h"

namespace reprise::sim {

// As RepriseSimActivity::engine.
enum class EngineKind : uint32_t {
  compute = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  memset = 4
};

// One user at a time, first come first served.
class Engine {
 public:
  void acquire();
  void release();
  uint64_t free_ns = 0;  // when its last user was done, by the modelled clock; its holder's

 private:
  std::mutex mutex_;
  std::condition_variable turn_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
};

struct BusyTimes {
  uint64_t compute_ns = 0;
  uint64_t copy_ns = 0;
  uint64_t overlap_ns = 0;
};

// Sums up how long kernels, host copies and both at once were running.
class BusyClock {
 public:
  uint64_t begin(EngineKind kind);  // returns the time
  uint64_t end(EngineKind kind);
  BusyTimes read();

 private:
  uint64_t advance();
  void count(EngineKind kind, int change);
  std::mutex mutex_;
  uint64_t last_ns_ = 0;
  int kernels_ = 0;
  int copies_ = 0;
  BusyTimes times_;
};

class Engines {
 public:
  Engine& of(EngineKind kind);
  BusyClock clock;

 private:
  Engine compute_;
  Engine host_to_device_;
  Engine device_to_host_;
  Engine within_;
};

class Device;

// Holds an engine for a scope, which lasts until `duration` is over, and records that as an activity.
class EngineUse {
 public:
  EngineUse(Device& device, EngineKind kind, const Execution& execution, Duration duration);
  ~EngineUse();
  EngineUse(const EngineUse&) = delete;
  EngineUse& operator=(const EngineUse&) = delete;

 private:
  uint64_t end_by_model();
  Device& device_;
  Engine& engine_;
  const EngineKind kind_;
  const Execution& execution_;
  const Duration duration_;
  uint64_t begun_ns_;  // by the clock
  uint64_t start_ns_;  // ... or by the modelled one
  uint64_t begun_cpu_ns_ = 0;
};

}  // namespace reprise::sim

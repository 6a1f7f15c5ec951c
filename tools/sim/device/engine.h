// What a device can do at the same time: one kernel, one copy in each direction, one copy or memset within the device.
// An operation waits in line for its engine; the busy times count what really ran. Callers: operations on stream
// threads.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace reprise::sim {

// As RepriseSimActivity::engine.
enum class EngineKind : uint32_t {
  compute = 0,
  host_to_device = 1,
  device_to_host = 2,
  device_to_device = 3,
  memset = 4
};

uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC
void sleep_until(uint64_t deadline_ns) noexcept;

// One user at a time, first come first served.
class Engine {
 public:
  void acquire();
  void release();

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

// Holds an engine for a scope and records that as an activity.
class EngineUse {
 public:
  EngineUse(Device& device, EngineKind kind, uint64_t activity, uint32_t stream);
  ~EngineUse();
  EngineUse(const EngineUse&) = delete;
  EngineUse& operator=(const EngineUse&) = delete;
  uint64_t start_ns() const { return start_ns_; }

 private:
  Device& device_;
  const EngineKind kind_;
  const uint64_t activity_;
  const uint32_t stream_;
  uint64_t start_ns_;
};

}  // namespace reprise::sim

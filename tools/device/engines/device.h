// One simulated device: its memory account, its engines and its primary context. Callers: contexts, memory, streams.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "preload/driver/sim_abi.h"
#include "tools/device/base/cuda_api.h"
#include "tools/device/engines/account.h"
#include "tools/device/engines/engine.h"

namespace reprise::sim {

class Context;
class Pool;

// Counters of RepriseSimStats that are not kept elsewhere.
struct DeviceCounters {
  std::atomic<uint64_t> create_calls{0};
  std::atomic<uint64_t> release_calls{0};
  std::atomic<uint64_t> map_calls{0};
  std::atomic<uint64_t> unmap_calls{0};
  std::atomic<uint64_t> set_access_calls{0};
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> copied_bytes_h2d{0};
  std::atomic<uint64_t> copied_bytes_d2h{0};
  std::atomic<uint64_t> modelled_ns{0};
  std::atomic<uint64_t> host_ns{0};
  std::atomic<uint64_t> late_operations{0};
  std::atomic<uint64_t> late_ns{0};
};

// A figure and the most that it was since cuDeviceSetGraphMemAttribute reset that.
class HighWater {
 public:
  uint64_t now() const noexcept { return now_.load(); }
  uint64_t high() const noexcept { return high_.load(); }
  void add(int64_t change) noexcept;
  void set(uint64_t value) noexcept;
  void reset() noexcept { high_ = now_.load(); }

 private:
  void raise(uint64_t now) noexcept;
  std::atomic<uint64_t> now_{0};
  std::atomic<uint64_t> high_{0};
};

// Memory of graphs that allocate: `used` is what they asked for, `reserved` what the device gives for it. Bytes.
struct GraphMemoryUse {
  HighWater used;
  HighWater reserved;
};

struct PrimaryContext {
  Context* context = nullptr;
  unsigned references = 0;
  unsigned flags = 0;
};

class Device {
 public:
  explicit Device(int device_ordinal);

  // Takes `bytes` of device memory from the account; false when the capacity does not hold them.
  bool charge(uint64_t bytes) noexcept;
  void refund(uint64_t bytes) noexcept;
  // What a context takes; without one a process has none of the device.
  bool open_context() noexcept;
  void close_context() noexcept;
  // Those that have a context on it.
  std::vector<DeviceProcess> processes() const;
  // By this process; what nobody holds.
  uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  uint64_t free() const noexcept;
  uint64_t capacity() const noexcept { return capacity_; }
  void reset_peak() noexcept { peak_.store(used(), std::memory_order_relaxed); }
  uint64_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }

  const int ordinal;
  Engines engines;

  DeviceCounters counters;
  GraphMemoryUse graph_memory;

  std::mutex mutex;  // guards what follows
  PrimaryContext primary;
  std::shared_ptr<Pool> default_pool;
  std::shared_ptr<Pool> current_pool;
  uint64_t peers = 0;  // bit per device

 private:
  const uint64_t capacity_;
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> peak_{0};
  std::atomic<int> contexts_{0};
};

// nullptr when there is no such device. Devices exist from the first cuInit on and live as long as the process.
Device* find_device(int ordinal) noexcept;
int device_count() noexcept;
void create_devices();

}  // namespace reprise::sim

// What the simulated device is told besides driver calls (sim_abi.h): which allocations the program has, and which of
// its calls is performed now. Null functions on real drivers. Callers: the enforcer and its dispatcher, the
// defragmenter, what measures mapping.
#pragma once
#include <cstdint>

namespace reprise {

struct DeviceObserver {
  void (*allocated)(uint64_t address, uint64_t bytes, uint64_t call) = nullptr;
  void (*freed)(uint64_t address, uint64_t call) = nullptr;
  void (*perform)(uint64_t call) = nullptr;
};
inline constinit DeviceObserver device_observer;

// Once the driver is known, before any of the below.
void find_device_observer() noexcept;

inline void observe_allocated(uint64_t address, uint64_t bytes, uint64_t call) noexcept {
  if (device_observer.allocated != nullptr) device_observer.allocated(address, bytes, call);
}
inline void observe_freed(uint64_t address, uint64_t call) noexcept {
  if (device_observer.freed != nullptr) device_observer.freed(address, call);
}

// The first access that made the device fail: its address, and the kernel. False: a driver does not say.
bool find_fault(uint64_t* address, char* kernel, unsigned capacity) noexcept;

// How many chunks can be mapped at a time, as far as that is known beforehand: UINT64_MAX on real drivers, which
// refuse.
uint64_t most_mappings() noexcept;

// What times calls of the driver, in nanoseconds: the host's steady clock, on a simulated device its own for threads.
using HostTime = uint64_t (*)();
HostTime host_time() noexcept;

// The calling thread performs the program's call at this position, or kMoves: moves its bytes.
class Performing {
 public:
  static constexpr uint64_t kMoves = ~uint64_t{0};
  explicit Performing(uint64_t call) noexcept {
    if (device_observer.perform != nullptr) device_observer.perform(call);
  }
  ~Performing() {
    if (device_observer.perform != nullptr) device_observer.perform(0);
  }
  Performing(const Performing&) = delete;
  Performing& operator=(const Performing&) = delete;
};

}  // namespace reprise

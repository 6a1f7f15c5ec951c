#include "preload/driver/device_observer.h"

#include <chrono>

#include "preload/driver/resolve.h"
#include "preload/driver/sim_abi.h"

namespace reprise {

static_assert(Performing::kMoves == kRepriseSimMoves);

void find_device_observer() noexcept {
  device_observer.allocated =
      reinterpret_cast<decltype(device_observer.allocated)>(driver_symbol("repriseSimAllocated"));
  device_observer.freed = reinterpret_cast<decltype(device_observer.freed)>(driver_symbol("repriseSimFreed"));
  device_observer.perform = reinterpret_cast<decltype(device_observer.perform)>(driver_symbol("repriseSimPerform"));
}

bool find_fault(uint64_t* address, char* kernel, unsigned capacity) noexcept {
  const auto ask = reinterpret_cast<decltype(&repriseSimLastFault)>(driver_symbol("repriseSimLastFault"));
  return ask != nullptr && ask(address, kernel, capacity) != 0;
}

uint64_t most_mappings() noexcept {
  const auto ask = reinterpret_cast<decltype(&repriseSimMostMappings)>(driver_symbol("repriseSimMostMappings"));
  return ask != nullptr ? ask() : UINT64_MAX;
}

HostTime host_time() noexcept {
  const auto simulated = reinterpret_cast<decltype(&repriseSimHostTime)>(driver_symbol("repriseSimHostTime"));
  if (simulated != nullptr) return simulated;
  return [] {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  };
}

}  // namespace reprise

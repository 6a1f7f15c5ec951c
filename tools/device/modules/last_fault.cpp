#include "tools/device/modules/last_fault.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "preload/driver/sim_abi.h"

namespace reprise::sim {
namespace {

struct LastFault {
  std::mutex mutex;
  bool kept = false;
  uint64_t address = 0;
  char kernel[512] = "";
};

LastFault& last_fault() {
  static LastFault& instance = *new LastFault;
  return instance;
}

}  // namespace

void keep_fault(uint64_t address, const std::string& kernel) noexcept {
  LastFault& last = last_fault();
  const std::lock_guard lock(last.mutex);
  if (last.kept) return;
  last.kept = true;
  last.address = address;
  std::strncpy(last.kernel, kernel.c_str(), sizeof last.kernel - 1);
}

}  // namespace reprise::sim

int repriseSimLastFault(uint64_t* address, char* kernel, unsigned capacity) {
  reprise::sim::LastFault& last = reprise::sim::last_fault();
  const std::lock_guard lock(last.mutex);
  if (!last.kept || capacity == 0) return 0;
  *address = last.address;
  std::strncpy(kernel, last.kernel, capacity - 1);
  kernel[capacity - 1] = 0;
  return 1;
}

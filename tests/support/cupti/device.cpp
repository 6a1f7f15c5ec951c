#include "tests/support/cupti/device.h"

#include <dlfcn.h>

#include <cstdlib>
#include <ctime>

#include "preload/driver/sim_abi.h"

namespace {

constexpr uint64_t kOrigin = 1'000'000'000'000'000'000;

struct SimulatedDevice {
  decltype(&repriseSimActivityEnable) enable = nullptr;
  decltype(&repriseSimActivityPush) push = nullptr;
  decltype(&repriseSimActivityPop) pop = nullptr;
  decltype(&repriseSimActivityRead) read = nullptr;
};

// The driver is loaded before CUPTI is.
const SimulatedDevice& device() {
  static const SimulatedDevice found = [] {
    SimulatedDevice made;
    const char* const path = std::getenv("REPRISE_DRIVER");
    void* const library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
    if (library == nullptr) return made;
    made.enable = reinterpret_cast<decltype(made.enable)>(dlsym(library, "repriseSimActivityEnable"));
    made.push = reinterpret_cast<decltype(made.push)>(dlsym(library, "repriseSimActivityPush"));
    made.pop = reinterpret_cast<decltype(made.pop)>(dlsym(library, "repriseSimActivityPop"));
    made.read = reinterpret_cast<decltype(made.read)>(dlsym(library, "repriseSimActivityRead"));
    return made;
  }();
  return found;
}

}  // namespace

uint64_t fake_device_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return kOrigin + static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void fake_device_enable(bool enabled) {
  if (device().enable != nullptr) device().enable(enabled ? 1 : 0);
}
void fake_device_push(uint64_t id) {
  if (device().push != nullptr) device().push(id);
}
void fake_device_pop() {
  if (device().pop != nullptr) device().pop();
}

void fake_device_read(void (*take)(uint64_t id, uint64_t start, uint64_t end)) {
  if (device().read == nullptr) return;
  RepriseSimActivity records[64];
  while (const unsigned count = device().read(records, 64)) {
    for (unsigned i = 0; i < count; ++i)
      take(records[i].id, records[i].start_ns + kOrigin, records[i].end_ns + kOrigin);
  }
}

#include "tools/sim/driver/faults.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tools/sim/control.h"
#include "tools/sim/driver/enter.h"

namespace reprise::sim {
namespace {

struct Fault {
  std::string function;
  unsigned calls_left;
  CUresult result;
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault> waiting;
  std::atomic<bool> armed{false};
};

Faults& faults() {
  static Faults& instance = *new Faults;
  return instance;
}

constexpr const char* kExecution = "launch-execution";

// "cuMemAlloc" names all versions: cuMemAlloc_v2 and the per-thread forms, too.
bool names(const std::string& wanted, const char* function) {
  const size_t length = wanted.size();
  if (std::strncmp(function, wanted.c_str(), length) != 0) return false;
  return function[length] == 0 || function[length] == '_';
}

CUresult take(const char* function) {
  Faults& all = faults();
  const std::lock_guard lock(all.mutex);
  CUresult result = CUDA_SUCCESS;
  for (auto it = all.waiting.begin(); it != all.waiting.end();) {
    if (names(it->function, function) && --it->calls_left == 0) {
      if (result == CUDA_SUCCESS) result = it->result;
      it = all.waiting.erase(it);
    } else {
      ++it;
    }
  }
  if (all.waiting.empty()) {
    all.armed.store(false);
    driver_state.fetch_and(~uint32_t{kFaultsArmed});
  }
  return result;
}

}  // namespace

CUresult take_fault(const char* function) noexcept { return take(function); }

CUresult next_execution_fault() noexcept {
  return faults().armed.load(std::memory_order_relaxed) ? take(kExecution) : CUDA_SUCCESS;
}

}  // namespace reprise::sim

int repriseSimInjectFault(const char* function, unsigned nth, int result) {
  using namespace reprise::sim;
  if (function == nullptr || nth == 0) return CUDA_ERROR_INVALID_VALUE;
  Faults& all = faults();
  const std::lock_guard lock(all.mutex);
  all.waiting.push_back({function, nth, static_cast<CUresult>(result)});
  all.armed.store(true);
  driver_state.fetch_or(kFaultsArmed);
  return CUDA_SUCCESS;
}

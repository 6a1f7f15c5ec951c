#include "tools/sim/streams/faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "preload/driver/sim_abi.h"
#include "tools/sim/streams/enter.h"

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
  std::vector<Fault> lasting;  // every call fails
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
  for (const Fault& fault : all.lasting) {
    if (result == CUDA_SUCCESS && names(fault.function, function)) result = fault.result;
  }
  if (all.waiting.empty() && all.lasting.empty()) {
    all.armed.store(false);
    driver_state.fetch_and(~uint32_t{kFaultsArmed});
  }
  return result;
}

void arm() {
  faults().armed.store(true);
  driver_state.fetch_or(kFaultsArmed);
}

// REPRISE_SIM_FAIL=cuMemHostAlloc=2,cuInit=100: what these calls always answer, as on a machine that lacks something.
__attribute__((constructor)) void read_lasting_faults() {
  const char* text = std::getenv("REPRISE_SIM_FAIL");
  if (text == nullptr) return;
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    const size_t equals = entry.find('=');
    const int code = equals == std::string::npos ? 0 : std::atoi(entry.c_str() + equals + 1);
    if (code == 0) {
      std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_FAIL: %s is not CALL=ERROR\n", entry.c_str());
      continue;
    }
    faults().lasting.push_back({entry.substr(0, equals), 0, static_cast<CUresult>(code)});
    arm();
  }
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
  arm();
  return CUDA_SUCCESS;
}

#include "tools/device/streams/faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "preload/driver/sim_abi.h"
#include "tools/device/engines/engine.h"
#include "tools/device/streams/calls.h"
#include "tools/device/streams/enter.h"

namespace reprise::sim {
namespace {

struct Fault {
  std::string function;
  uint64_t nth = 0;  // 0: every call
  CUresult result = CUDA_SUCCESS;
  uint64_t delay_ns = 0;   // the call takes so much longer
  bool from_shim = false;  // only calls that the shim makes count
  std::string text;        // as in REPRISE_SIM_FAIL; with an @ the fault comes once, and is told
};

struct Faults {
  std::mutex mutex;
  std::vector<Fault> list;
  std::atomic<bool> armed{false};
};

Faults& faults() {
  static Faults& instance = *new Faults;
  return instance;
}

constexpr const char* kExecution = "launch-execution";
constexpr const char* kLaunchOf = "launch-of-";  // and a part of a kernel's name

// "cuMemAlloc" names all versions: cuMemAlloc_v2 and the per-thread forms, too. Of a kernel's name, which is a mangled
// one, a part will do.
bool names(const std::string& wanted, const char* function) {
  const size_t length = wanted.size();
  const size_t prefix = std::strlen(kLaunchOf);
  if (std::strncmp(function, kLaunchOf, prefix) == 0) {
    return wanted.compare(0, prefix, kLaunchOf) == 0 &&
           std::strstr(function + prefix, wanted.c_str() + prefix) != nullptr;
  }
  if (std::strncmp(function, wanted.c_str(), length) != 0) return false;
  return function[length] == 0 || function[length] == '_';
}

void arm() {
  faults().armed.store(true);
  driver_state.fetch_or(kFaultsArmed);
}

CUresult take(const char* function, bool from_shim) {
  Faults& all = faults();
  CUresult result = CUDA_SUCCESS;
  uint64_t delay_ns = 0;
  {
    const std::lock_guard lock(all.mutex);
    for (auto it = all.list.begin(); it != all.list.end();) {
      const bool counts = names(it->function, function) && (from_shim || !it->from_shim);
      if (!counts || (it->nth > 0 && --it->nth > 0)) {
        ++it;
        continue;
      }
      const bool once = it->text.find('@') != std::string::npos;
      if (once) std::fprintf(stderr, "reprise: simulated device: now %s\n", it->text.c_str());
      if (result == CUDA_SUCCESS) result = it->result;
      delay_ns += it->delay_ns;
      it = once ? all.list.erase(it) : it + 1;
    }
    if (all.list.empty()) {
      all.armed.store(false);
      if (!counting_calls()) driver_state.fetch_and(~uint32_t{kFaultsArmed});
    }
  }
  if (delay_ns > 0) sleep_until(now_ns() + delay_ns);
  return result;
}

// [shim.]CALL[@N]=ERROR or =+MICROSECONDS.
std::optional<Fault> read_fault(const std::string& text) {
  Fault fault;
  fault.text = text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  std::string call = text.substr(0, equals);
  if (const size_t at = call.find('@'); at != std::string::npos) {
    fault.nth = std::strtoull(call.c_str() + at + 1, nullptr, 10);
    if (fault.nth == 0) return std::nullopt;
    call.resize(at);
  }
  fault.from_shim = call.rfind("shim.", 0) == 0;
  fault.function = fault.from_shim ? call.substr(5) : call;
  const char* const answer = text.c_str() + equals + 1;
  const unsigned long number = std::strtoul(*answer == '+' ? answer + 1 : answer, nullptr, 10);
  if (*answer == '+') {
    fault.delay_ns = number * 1000;
  } else {
    fault.result = static_cast<CUresult>(number);
  }
  if (number == 0 || fault.function.empty()) return std::nullopt;
  return fault;
}

__attribute__((constructor)) void read_environment() {
  if (count_calls()) arm();
  const char* text = std::getenv("REPRISE_SIM_FAIL");
  if (text == nullptr) return;
  std::istringstream list(text);
  for (std::string entry; std::getline(list, entry, ',');) {
    if (auto fault = read_fault(entry)) {
      faults().list.push_back(*std::move(fault));
      arm();
    } else {
      std::fprintf(stderr, "reprise: simulated device: REPRISE_SIM_FAIL: %s is not [shim.]CALL[@N]=ERROR\n",
                   entry.c_str());
    }
  }
}

}  // namespace

CUresult take_fault(const char* function, const void* caller) noexcept {
  if (thread_state.per_thread_default) caller = thread_state.per_thread_caller;
  const bool from_shim = is_shim(caller);
  if (counting_calls()) note_call(function, from_shim);
  return faults().armed.load(std::memory_order_relaxed) ? take(function, from_shim) : CUDA_SUCCESS;
}

CUresult launch_fault(const std::string& kernel) {
  if (!faults().armed.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  return take((kLaunchOf + kernel).c_str(), false);
}

CUresult next_execution_fault() noexcept {
  return faults().armed.load(std::memory_order_relaxed) ? take(kExecution, false) : CUDA_SUCCESS;
}

}  // namespace reprise::sim

int repriseSimInjectFault(const char* function, unsigned nth, int result) {
  using namespace reprise::sim;
  if (function == nullptr || nth == 0) return CUDA_ERROR_INVALID_VALUE;
  Faults& all = faults();
  const std::lock_guard lock(all.mutex);
  Fault fault;
  fault.function = function;
  fault.nth = nth;
  fault.result = static_cast<CUresult>(result);
  fault.text = fault.function + "@" + std::to_string(nth) + "=" + std::to_string(result);
  all.list.push_back(std::move(fault));
  arm();
  return CUDA_SUCCESS;
}

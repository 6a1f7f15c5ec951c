// Activity records of the simulated device: it knows exactly when each op ran.
#include <atomic>
#include <new>

#include "preload/driver/resolve.h"
#include "preload/driver/sim_abi.h"
#include "preload/record/activity/sources.h"

namespace reprise {
namespace {

class SimulatedSource final : public ActivitySource {
 public:
  bool find_entries() noexcept {
    return find("repriseSimActivityEnable", &enable_) && find("repriseSimActivityPush", &push_) &&
           find("repriseSimActivityPop", &pop_) && find("repriseSimActivityRead", &read_);
  }

  bool start() noexcept override {
    enable_(1);
    running_.store(true, std::memory_order_relaxed);
    return true;
  }
  void stop() noexcept override {
    running_.store(false, std::memory_order_relaxed);
    enable_(0);
  }
  bool running() const noexcept override { return running_.load(std::memory_order_relaxed); }
  void push(uint64_t id, CUstream) noexcept override { push_(id); }
  void pop(uint64_t, CUstream) noexcept override { pop_(); }

  void collect(ActivityCallback callback, void* user) noexcept override {
    RepriseSimActivity records[256];
    while (const unsigned count = read_(records, 256)) {
      for (unsigned i = 0; i < count; ++i) {
        if (records[i].id != 0) callback(user, records[i].id, records[i].start_ns, records[i].end_ns);
      }
    }
  }

  const char* name() const noexcept override { return "sim"; }

 private:
  template <typename Function>
  bool find(const char* name, Function** entry) noexcept {
    *entry = reinterpret_cast<Function*>(driver_symbol(name));
    return *entry != nullptr;
  }

  std::atomic<bool> running_{false};
  decltype(&repriseSimActivityEnable) enable_ = nullptr;
  decltype(&repriseSimActivityPush) push_ = nullptr;
  decltype(&repriseSimActivityPop) pop_ = nullptr;
  decltype(&repriseSimActivityRead) read_ = nullptr;
};

}  // namespace

ActivitySource* simulated_activity_source() noexcept {
  static ActivitySource* const source = []() -> ActivitySource* {
    auto* made = new (std::nothrow) SimulatedSource;
    return made != nullptr && made->find_entries() ? made : nullptr;
  }();
  return source;
}

}  // namespace reprise

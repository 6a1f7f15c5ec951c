// The program's events that are recorded or waited for in the log but not with the driver yet. Callers: the enforcer
// (program threads) and the dispatcher. Calls about any other event go straight to the driver.
#pragma once
#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace reprise::replay {

class Events {
 public:
  enum class Role { record, wait };

  // Program side, when the entry is appended; dispatcher, when it has been issued. issued() destroys the event if the
  // program has asked for that in between.
  void deferred(CUevent event, Role role) noexcept;
  void issued(CUevent event, Role role) noexcept;

  // Is a record of the event still deferred?
  bool record_pending(CUevent event) noexcept;
  // The program destroys the event: true when that has to wait for deferred uses (and will happen by itself).
  bool destroy_later(CUevent event) noexcept;

 private:
  struct State {
    uint32_t records = 0;
    uint32_t waits = 0;
    bool destroyed = false;
  };
  std::mutex mutex_;
  std::unordered_map<CUevent, State> pending_;
};

}  // namespace reprise::replay

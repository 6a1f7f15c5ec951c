// How much of the device ours may be, and who has the rest of it: for messages and the run log, so that a budget that
// the device cannot give is not taken for one that is too small. Callers: the dispatcher sets it, whoever has no room
// asks.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "preload/base/room_figures.h"
#include "replay/base/run_log.h"
#include "replay/memory/budget.h"

namespace reprise::replay {

// By its last measure().
RoomFigures figures_of(const Outside& outside) noexcept;

class DeviceRoom {
 public:
  void set(const RoomFigures& figures) noexcept;
  RoomFigures get() const noexcept;
  // To the run log, each time; the last line holds.
  void write(RunLogWriter& log) const noexcept;
  // Says it, once, where the device has less room than the budget of so many bytes.
  void tell_of_less_than(uint64_t budget, RunLogWriter& log) noexcept;
  // The budget is what is free, whatever that is: a budget that the user did not name is not complained of.
  void budget_is_what_is_free() noexcept { told_.store(true); }

 private:
  mutable std::mutex mutex_;
  RoomFigures figures_;
  std::atomic<bool> told_{false};  // several threads have no room at the same time
};

}  // namespace reprise::replay

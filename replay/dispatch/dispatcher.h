// The one thread that issues the program's device work. Takes entries from the command log: in order on demand, by the
// plan while one is in force. Made by the session.
//
//     application threads         thread "reprise"                               device
//                                                                                lane kDigests: of what leaves
//
//     hook -> Enforcer -append-> CommandLog -> Dispatcher::run                   lane kToDevice: reloads
//     hook -> Enforcer -append->  (a bounded     |- OnDemandExecutor: Pager  --> lane kToHost: offloads
//     hook -> Enforcer -append->   ring)         '- PlanExecutor: Progress       others: the program's streams
//        |      ^                                     |
//        |      '--- Waiter::done, grant; Faults <----'
//        |
//        '-> Recorder: trace file -> thread "reprise plan" -> child process `reprise plan` -> plan file -> PlanIndex
//                                    (PlannerProcess)                                       (PlanSession::take_plan)
//
// Lanes are streams: work on one lane completes in order, between lanes the dispatcher orders it with events.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "replay/dispatch/on_demand.h"
#include "replay/dispatch/plan_executor.h"
#include "replay/issue/shared.h"
#include "replay/measure/link_rates.h"
#include "replay/memory/budget.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

class Dispatcher {
 public:
  explicit Dispatcher(Shared* shared) noexcept;

  enum class Measure : uint8_t {
    nothing,
    link,      // for the run log alone: all that it takes is given back
    planning,  // ... and what else a planner needs
  };
  // Sets the memory up in the current context and starts the thread. An error: nothing was started. What is measured is
  // known afterwards. `held`: device memory that the program holds already.
  CUresult start(uint64_t host_cap, Measure measure, uint64_t held) noexcept;
  // Why start() failed, where more is known than the driver's error; "" otherwise.
  const char* start_problem() const noexcept { return start_problem_; }
  // Before start(): examines kernels.
  void examine(const Examiner::Allowance& allowance, std::string folder, std::string device) noexcept {
    on_demand_.examiner.open(allowance, std::move(folder), std::move(device));
  }
  // Before start(): audits them instead.
  void audit(std::string folder, std::string device, uint64_t iterations) noexcept {
    on_demand_.auditor.open(std::move(folder), std::move(device), iterations);
  }
  const LinkRates& link_rates() const noexcept { return link_rates_; }
  // The first launch that the driver has refused; empty: none, or only for want of memory, which was told.
  std::string refused_launch() const noexcept { return issuer_.refused_launches.told(); }
  // Waits until all entries of the log are issued, at most `timeout_ms`. Returns whether they are.
  bool wait_settled(uint64_t timeout_ms) noexcept;

  // After the errand `close`: returns when the thread has ended.
  void wait_ended() noexcept;

  ManagedMemory& memory() noexcept { return memory_; }

 private:
  void run() noexcept;
  void step_on_demand(LogEntry& entry) noexcept;
  void activate(LogEntry& entry) noexcept;
  bool is_to_look() noexcept;
  void follow_budget() noexcept;
  static void rise_with_working_set(void* self, uint64_t chunks) noexcept;
  static void look_at_peak(void* self) noexcept;
  static void look_at_new_chunk(void* self, uint64_t at_once) noexcept;
  void record_memory() noexcept;

  void say_short_of_addresses() noexcept;

  Shared& shared_;
  char start_problem_[160] = "";
  uint64_t peak_footprint_ = 0;  // as of the call that is served, whatever the program has called since
  ManagedMemory memory_;
  LinkRates link_rates_;
  Pager pager_;
  Issuer issuer_;
  OnDemandExecutor on_demand_;
  PlanExecutor executor_;
  std::atomic<bool> ended_{false};
  uint64_t next_ = 0;  // log position of the next entry to perform on demand
  uint64_t measured_at_bytes_ = UINT64_MAX;
  uint64_t measured_at_ns_ = 0;
  uint64_t recorded_bytes_ = 0;
  uint64_t recorded_moved_bytes_ = 0;
};

}  // namespace reprise::replay

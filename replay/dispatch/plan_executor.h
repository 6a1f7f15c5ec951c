// Issues the program's work by a plan: all that is ready, in the plan's priority order, ordered on the device by events
// alone. At a divergence, when the program or a driver call does not do what the plan says, all submitted work is
// finished and the on-demand mode goes on. Caller: the dispatcher, on its thread.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "replay/dispatch/activation.h"
#include "replay/dispatch/on_demand.h"
#include "replay/dispatch/plan_in_force.h"
#include "replay/dispatch/plan_safety.h"
#include "replay/dispatch/repeats.h"
#include "replay/dispatch/transfers.h"
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"
#include "replay/progress/progress.h"
#include "replay/progress/stalls.h"
#include "replay/progress/stopwatch.h"

namespace reprise::replay {

class PlanExecutor {
 public:
  PlanExecutor(Shared* shared, ManagedMemory* memory, Pager* pager, Issuer* issuer, Examiner* examiner) noexcept
      : shared_(*shared),
        memory_(*memory),
        issuer_(*issuer),
        activation_(shared, memory, pager),
        repeats_(shared, memory, pager, &activation_, examiner) {
    plan_.safety = &safeties_.trusted;
  }

  bool active() const noexcept { return plan_.active; }
  // Brings the persistent tensors to the start state of the entry's plan and begins with its iteration. On failure the
  // entries that follow are performed on demand.
  void activate(const LogEntry& entry) noexcept;
  // Issues what can be issued now. False: there was nothing, look again later. The plan may have ended afterwards.
  bool step() noexcept;
  // There is nothing to do before the program calls again.
  // A call that was not taken in yet waits for work on the device, whose end wakes nobody.
  // How long an op is held has to be seen.
  bool idle() const noexcept {
    return !intake_.behind() && progress_.unissued_submitted() == 0 && ordered_.entries.empty() &&
           !transfers_.ready() && !plan_.safety->any_arriving() && !transfers_.any_departing() &&
           !repeats_.unchecked() && !stalls_.any_held();
  }
  // The program ends: what is known of the current iteration goes to the run log.
  void finish() noexcept;

 private:
  static constexpr uint64_t kComputeDepth = 64;  // ops with the driver: the device never waits for this thread
  static constexpr uint64_t kUnmarked = 8;       // ops in a row that need no marker
  static constexpr uint64_t kComputeDry = 1;  // so few that issuing an op which waits for a transfer delays no other op

  enum class Taken { yes, later, diverge };
  bool intake() noexcept;
  Taken take(LogEntry& entry) noexcept;
  Taken take_planned(LogEntry& entry) noexcept;
  void end_iteration(uint32_t call, uint64_t iteration) noexcept;
  bool perform_ordered() noexcept;
  void settle_handovers() noexcept;

  bool issue_all() noexcept;
  void mark_if_waited_for(Instance instance, LaneIndex lane) noexcept;
  void mark_ends() noexcept;
  bool collect_granted() noexcept;
  void issue_op(Instance instance) noexcept;
  bool check_repeats(bool wait) noexcept;
  void op_issued(Instance instance, LaneIndex lane, CUresult result) noexcept;
  bool host_order_allows(const LogEntry* entry) noexcept;

  // What plan_safety.h has of this.
  friend class PlanSafety;
  friend class TrustedPlan;
  friend class StrictPlan;
  uint64_t outstanding_ops() noexcept;

  bool anything_ready() noexcept;
  bool stuck() noexcept;
  void diverge(const char* why) noexcept;
  void finish_submitted() noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Issuer& issuer_;
  Activation activation_;
  Repeats repeats_;
  Progress progress_;
  Stopwatch stopwatch_;

  PlanInForce plan_;
  Intake intake_;
  struct Ordered {
    std::deque<LogEntry*> entries;  // events, handovers: performed when all entries before are issued
    bool barrier = false;           // no entry behind the last is taken in before that is performed
  } ordered_;
  std::vector<GrantedOp> granted_;          // being issued by program threads
  std::vector<const LogEntry*> host_work_;  // entries that touch host memory and are not issued
  Stalls stalls_{&memory_, &progress_, &intake_, &granted_, &stopwatch_};
  Transfers transfers_{&shared_, &memory_, &activation_, &progress_, &stopwatch_, &plan_};
  struct Safeties {
    TrustedPlan trusted;
    StrictPlan strict;
  } safeties_{TrustedPlan(this), StrictPlan(this)};
};

}  // namespace reprise::replay

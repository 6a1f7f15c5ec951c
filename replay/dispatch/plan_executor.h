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
#include "replay/dispatch/plan_safety.h"
#include "replay/dispatch/repeats.h"
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
        repeats_(shared, memory, pager, &activation_, examiner) {}

  bool active() const noexcept { return active_; }
  // Brings the persistent tensors to the start state of the entry's plan and begins with its iteration. On failure the
  // entries that follow are performed on demand.
  void activate(const LogEntry& entry) noexcept;
  // Issues what can be issued now. False: there was nothing, look again later. The plan may have ended afterwards.
  bool step() noexcept;
  // There is nothing to do before the program calls again.
  // A call that was not taken in yet waits for work on the device, whose end wakes nobody.
  // How long an op is held has to be seen.
  bool idle() const noexcept {
    return !intake_.behind() && progress_.unissued_submitted() == 0 && ordered_.empty() && !transfers_ready_ &&
           !safety_->any_arriving() && departures_.empty() && !repeats_.unchecked() && !stalls_.any_held();
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
  void end_iteration(uint64_t iteration) noexcept;
  bool perform_ordered() noexcept;
  void perform_handover(const LogEntry& entry) noexcept;
  void settle_handovers() noexcept;

  bool issue_all() noexcept;
  void mark_if_waited_for(Instance instance, LaneIndex lane) noexcept;
  void mark_ends() noexcept;
  bool issue_transfers(LaneKind kind) noexcept;
  bool collect_granted() noexcept;
  void issue_op(Instance instance) noexcept;
  void issue_transfer(Instance instance) noexcept;
  bool far_enough_ahead(LaneIndex lane) noexcept;
  bool on_its_way(Instance instance) const noexcept;
  CUresult copy_in_time(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                        DigestCheck* comparison = nullptr) noexcept;
  CUresult copy_for(const plan::Vertex& vertex, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks,
                    DigestCheck* comparison) noexcept;
  void transfer_failed(Instance instance, CUresult result) noexcept;
  bool compare_instead(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept;
  bool advance_departures() noexcept;
  void settle_departures() noexcept;
  void departed(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneUse use) noexcept;
  LaneUse last_to_host() const noexcept { return {Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued}; }
  bool check_repeats(bool wait) noexcept;
  void op_issued(Instance instance, LaneIndex lane, CUresult result) noexcept;
  CUresult wait_for_predecessors(Instance instance, LaneIndex lane) noexcept;
  LaneUses transfers_before(Instance instance) const noexcept;
  bool transfers_complete(Instance instance) const noexcept;
  bool host_order_allows(const LogEntry* entry) noexcept;

  // What plan_safety.h has of this.
  friend class PlanSafety;
  friend class TrustedPlan;
  friend class StrictPlan;
  uint64_t outstanding_ops() noexcept;
  void stay(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, CUresult result) noexcept;
  LaneUses awaited_elsewhere(Instance instance, LaneIndex lane) const noexcept;

  bool anything_ready() noexcept;
  bool stuck() noexcept;
  void diverge(const char* why) noexcept;
  void refuse(uint32_t plan, const std::string& why, bool short_of_memory, bool for_good) noexcept;
  void give_up_facts() noexcept;
  void resume_recording() noexcept;
  void finish_submitted() noexcept;
  uint64_t activity_id(Instance instance) const noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Issuer& issuer_;
  Activation activation_;
  Repeats repeats_;
  Progress progress_;
  Stopwatch stopwatch_;

  const PlanIndex* plan_index_ = nullptr;
  uint32_t plan_number_ = 0;
  bool active_ = false;
  std::array<int, kMostPlans> refusals_{};  // by plan, in a row
  bool closing_ = false;                    // diverging: finish what was submitted, begin nothing else
  std::string repeat_failure_;              // what failure_ points to where a repeat was not like the first launch
  const char* failure_ = nullptr;           // a driver call failed: why to diverge
  Intake intake_;
  bool transfers_ready_ = false;               // a transfer is ready, but its lane is full
  LaneIndex compute_lane_ = Lanes::kToDevice;  // of the last op
  std::deque<LogEntry*> ordered_;              // events, handovers: performed when all entries before are issued
  bool barrier_ = false;                    // no entry behind the last of `ordered_` is taken in before it is performed
  std::vector<GrantedOp> granted_;          // being issued by program threads
  std::vector<const LogEntry*> host_work_;  // entries that touch host memory and are not issued
  uint64_t polls_seen_ = 0;

  // Offloads whose bytes may be on the host already: compared, then copied where they are not.
  struct DepartureUnderWay {
    Instance instance;
    DigestCheck comparison;
    std::vector<ChunkIndex> chunks;
  };
  std::vector<DepartureUnderWay> departures_;
  std::array<std::vector<Instance>, 2> sent_;  // transfers by direction that may not be done, oldest first

  Stalls stalls_{&memory_, &progress_, &intake_, &granted_, &stopwatch_};

  TrustedPlan trusted_{this};
  StrictPlan strict_{this};
  PlanSafety* safety_ = &trusted_;  // of the plan in force
};

}  // namespace reprise::replay

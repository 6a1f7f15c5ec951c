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
#include "replay/dispatch/held_ops.h"
#include "replay/dispatch/on_demand.h"
#include "replay/dispatch/plan_safety.h"
#include "replay/dispatch/progress.h"
#include "replay/dispatch/repeats.h"
#include "replay/dispatch/stopwatch.h"
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

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
    return next_ == seen_tail_ && progress_.unissued_submitted() == 0 && ordered_.empty() && !transfers_ready_ &&
           !safety_->any_arriving() && departures_.empty() && !repeats_.unchecked() && held_.empty();
  }
  // The program ends: what is known of the current iteration goes to the run log.
  void finish() noexcept;

 private:
  static constexpr uint64_t kComputeDepth = 64;  // ops with the driver: the device never waits for this thread
  static constexpr uint64_t kMapSlice = 8;       // chunks that are mapped before ops are looked at again
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
  CUresult map_and_look(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept;
  CUresult grant_some(CUdeviceptr base) noexcept;
  void stay(Instance instance, ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, CUresult result) noexcept;

  // How long the device has nothing to run (plan_stalls.cpp).
  LaneUses awaited_elsewhere(Instance instance, LaneIndex lane) const noexcept;
  LaneUse next_on(LaneIndex lane) noexcept;
  void hold(LaneIndex lane, LaneUses awaited) noexcept;
  void event_recorded(const LogEntry& entry) noexcept;
  void hold_for_event(const LogEntry& entry) noexcept;
  bool runs_dry() noexcept;
  void look_at_device() noexcept;
  void look_before_issue() noexcept;
  void look_behind_issue() noexcept;

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
  std::array<int, kMostPlans> refusals_{};     // by plan, in a row
  bool closing_ = false;                       // diverging: finish what was submitted, begin nothing else
  std::string repeat_failure_;                 // what failure_ points to where a repeat was not like the first launch
  const char* failure_ = nullptr;              // a driver call failed: why to diverge
  uint64_t next_ = 0;                          // log position of the next entry to take in
  uint64_t seen_tail_ = 0;                     // end of the log when step() looked
  bool transfers_ready_ = false;               // a transfer is ready, but its lane is full
  LaneIndex compute_lane_ = Lanes::kToDevice;  // of the last op
  HeldOps held_;
  struct Recorded {
    CUevent event;
    LaneUse at;
  };
  std::vector<Recorded> recorded_;  // events of the program behind work that may not be complete
  uint64_t looked_ns_ = 0;          // when the device was looked at last, 0: never
  bool was_dry_ = false;            // and then it had nothing to run
  uint64_t looked_at_calls_ = 0;    // ... and so many calls for mappings had been made
  std::deque<LogEntry*> ordered_;   // events, handovers: performed when all entries before are issued
  bool barrier_ = false;            // no entry behind the last of `ordered_` is taken in before it is performed
  struct Granted {
    Instance instance;
    LaneIndex lane;
  };
  std::vector<Granted> granted_;            // being issued by program threads
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

  uint64_t chunk_grant_ns_ = 25'000;  // that access to a chunk takes; to begin with, what it did on an H200

  TrustedPlan trusted_{this};
  StrictPlan strict_{this};
  PlanSafety* safety_ = &trusted_;  // of the plan in force
};

}  // namespace reprise::replay

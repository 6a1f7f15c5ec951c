// Issues the program's work by a plan: whatever is ready goes, in the plan's priority order, ordered on the device by
// events alone. Falls back to passive mode when the program or a driver call does not follow. Dispatcher thread only.
#pragma once
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "replay/dispatch/activation.h"
#include "replay/dispatch/on_demand.h"
#include "replay/dispatch/progress.h"
#include "replay/dispatch/shared.h"
#include "replay/dispatch/stopwatch.h"
#include "replay/memory/memory.h"
#include "replay/memory/pager.h"

namespace reprise::replay {

class PlanExecutor {
 public:
  PlanExecutor(Shared* shared, ManagedMemory* memory, Pager* pager, Issuer* issuer) noexcept
      : shared_(*shared), memory_(*memory), issuer_(*issuer), activation_(shared, memory, pager) {}

  bool active() const noexcept { return active_; }
  // Brings the persistent tensors to the plan's start state and begins with `iteration`. On failure passive mode goes
  // on; the entries that follow are performed as ordinary ones.
  void activate(const PlanIndex* plan_index, uint64_t iteration) noexcept;
  // Does what can be done now. False: nothing, look again later. May end in passive mode.
  bool step() noexcept;
  // Nothing will happen before the program calls again.
  bool idle() const noexcept { return progress_.unissued_submitted() == 0 && ordered_.empty() && !transfers_ready_; }
  // The program ends: what is known of the current iteration goes to the run log.
  void finish() noexcept;

 private:
  enum class Taken { yes, later, diverge };
  bool intake() noexcept;
  Taken take(LogEntry& entry) noexcept;
  Taken take_planned(LogEntry& entry) noexcept;
  bool perform_ordered() noexcept;
  void perform_handover(const LogEntry& entry) noexcept;
  void settle_handovers() noexcept;

  bool issue_releases() noexcept;
  bool issue_ops() noexcept;
  bool issue_transfers(LaneKind kind) noexcept;
  bool collect_granted() noexcept;
  void issue_op(Instance instance) noexcept;
  void issue_transfer(Instance instance) noexcept;
  CUresult copy_for(const plan::Vertex& vertex, ResidentTensor& tensor) noexcept;
  void op_issued(Instance instance, LaneIndex lane, CUresult result) noexcept;
  void release(Instance instance) noexcept;
  CUresult wait_for_predecessors(Instance instance, LaneIndex lane) noexcept;
  bool transfers_complete(Instance instance) const noexcept;
  bool host_order_allows(const LogEntry& entry) noexcept;
  bool can_place(uint32_t vertex) noexcept;
  bool place(uint32_t vertex) noexcept;
  bool remap(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept;
  void insert_small_extents(const LogEntry& entry) noexcept;
  void insert_live_small_extents() noexcept;
  void record_stall() noexcept;

  bool anything_ready() noexcept;
  bool stuck() noexcept;
  void diverge(const char* why) noexcept;
  void finish_submitted() noexcept;
  uint64_t activity_id(Instance instance) const noexcept;

  Shared& shared_;
  ManagedMemory& memory_;
  Issuer& issuer_;
  Activation activation_;
  Progress progress_;
  Stopwatch stopwatch_;

  const PlanIndex* plan_index_ = nullptr;
  bool active_ = false;
  int refusals_ = 0;
  bool closing_ = false;                       // finish what was submitted, begin nothing
  const char* failure_ = nullptr;              // a driver call failed: leave
  uint64_t next_ = 0;                          // log position of the next entry to take in
  uint64_t seen_tail_ = 0;                     // end of the log when step() looked
  bool transfers_ready_ = false;               // some transfer could go, but its lane is full
  LaneIndex compute_lane_ = Lanes::kToDevice;  // of the last op, to see whether the device runs dry
  Instance last_op_;                           // and what it was
  uint64_t looked_ns_ = 0;                     // when step() looked last, 0: never
  std::deque<LogEntry*> ordered_;              // events and the like, performed when everything before them is issued
  bool barrier_ = false;                       // the last of `ordered_` holds everything behind it back
  struct Granted {
    Instance instance;
    LaneIndex lane;
  };
  std::vector<Granted> granted_;            // being issued by program threads
  std::vector<const LogEntry*> host_work_;  // taken in, not issued, touch host memory
  std::vector<int8_t> small_live_;  // by tensor: small transient ones that the program has allocated and not freed
  uint64_t polls_seen_ = 0;
};

}  // namespace reprise::replay

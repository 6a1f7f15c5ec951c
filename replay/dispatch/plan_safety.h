// In which order a plan's work is issued, and how its tensors come and go, with either kind of safety
// (replay/memory/safety.h). Strict keeps the program's order and every access that no hook sees right, or lets it
// fault; audited safety uses the one or the other, by plan. Caller: the plan executor, of which these are a part.
//
//              ops and frees                        a tensor comes                       leaves
//     trusted  when their edges allow, by priority  its chunks are its own, then a copy  a copy, behind which others
//     strict   in the program's order               a copy, then mapped in pieces        unmapped, then a copy
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include "replay/dispatch/activation.h"
#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/progress/progress.h"

namespace reprise::replay {

class PlanExecutor;

class PlanSafety {
 public:
  explicit PlanSafety(PlanExecutor* executor) noexcept;
  PlanSafety(const PlanSafety&) = delete;
  PlanSafety& operator=(const PlanSafety&) = delete;
  virtual ~PlanSafety() = default;

  virtual void begin(const PlanIndex* plan_index) noexcept { plan_index_ = plan_index; }
  // The program has called this op or free.
  virtual void submitted(Instance) noexcept {}
  // These issue what can be issued now. True: something was.
  virtual bool issue_releases() noexcept { return false; }
  virtual bool issue_ops() noexcept = 0;
  virtual bool any_op_ready() noexcept = 0;
  virtual CUresult wait_for_fence(Instance, LaneIndex) noexcept { return CUDA_SUCCESS; }
  // By lane: the positions that all later ops wait for.
  const std::vector<uint64_t>& fence() const noexcept { return fence_; }
  virtual void issued(const plan::Call&, LaneUse) noexcept {}

  // May the tensors that the vertex brings in take their places? They do; false: a mapping failed.
  virtual bool can_place(uint32_t vertex) noexcept = 0;
  virtual bool place(uint32_t vertex, LaneIndex lane) noexcept = 0;
  virtual bool can_transfer(uint32_t vertex) noexcept = 0;
  virtual void issue_transfer(Instance instance, ResidentTensor& tensor) noexcept = 0;
  // An offload is with the driver until `use`, or needed no copy; or it failed, and the tensor stays.
  virtual void departed(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneUse use) noexcept = 0;
  virtual void stays(ResidentTensor&, const std::vector<ChunkIndex>& /*chunks*/) noexcept {}
  // Reloads that are with the driver and not issued for the plan yet.
  virtual bool any_arriving() const noexcept { return false; }
  virtual bool advance_arrivals() noexcept { return false; }
  virtual void cancel_arrivals() noexcept {}
  // When the copy of a transfer is complete.
  virtual LaneUse copied(Instance instance) const noexcept { return progress_.use(instance); }

 protected:
  // False: not now, as there is no place for a digest; or it failed.
  bool issue_drop(Instance instance) noexcept;
  bool issue_repeat(Instance instance) noexcept;

  PlanExecutor& executor_;
  Shared& shared_;
  ManagedMemory& memory_;
  Activation& activation_;
  Progress& progress_;
  const PlanIndex* plan_index_ = nullptr;
  std::vector<uint64_t> fence_;

 private:
  LaneIndex lane_of_repeat(const Command& command) noexcept;
};

class TrustedPlan final : public PlanSafety {
 public:
  using PlanSafety::PlanSafety;

  bool issue_releases() noexcept override;
  bool issue_ops() noexcept override;
  bool any_op_ready() noexcept override;
  bool can_place(uint32_t vertex) noexcept override;
  bool place(uint32_t vertex, LaneIndex lane) noexcept override;
  bool can_transfer(uint32_t vertex) noexcept override { return can_place(vertex); }
  void issue_transfer(Instance instance, ResidentTensor& tensor) noexcept override;
  void departed(ResidentTensor& tensor, const std::vector<ChunkIndex>&, LaneUse use) noexcept override;

 private:
  void release(Instance instance) noexcept;
  bool remap(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept;
};

class StrictPlan final : public PlanSafety {
 public:
  using PlanSafety::PlanSafety;

  void begin(const PlanIndex* plan_index) noexcept override;
  void submitted(Instance instance) noexcept override { in_order_.push_back(instance); }
  bool issue_ops() noexcept override;
  bool any_op_ready() noexcept override;
  CUresult wait_for_fence(Instance instance, LaneIndex lane) noexcept override;
  void issued(const plan::Call& call, LaneUse use) noexcept override;
  bool can_place(uint32_t vertex) noexcept override;
  bool place(uint32_t vertex, LaneIndex lane) noexcept override;
  bool can_transfer(uint32_t vertex) noexcept override;
  void issue_transfer(Instance instance, ResidentTensor& tensor) noexcept override;
  void departed(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneUse use) noexcept override;
  void stays(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks) noexcept override;
  bool any_arriving() const noexcept override { return !arrivals_.empty(); }
  bool advance_arrivals() noexcept override;
  void cancel_arrivals() noexcept override;
  LaneUse copied(Instance instance) const noexcept override;

 private:
  bool issue_own(uint64_t outstanding, bool next_may_go) noexcept;
  bool next_is_ready() noexcept;
  bool next_may_go(uint64_t outstanding) noexcept;
  void pass_free(Instance instance) noexcept;
  bool can_occupy(const plan::Acquire& acquire) noexcept;
  bool occupy(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept;
  bool take_over(ResidentTensor& tensor, const std::vector<ChunkIndex>& chunks, LaneIndex lane) noexcept;
  void depart(Instance instance, ResidentTensor& tensor) noexcept;
  void begin_arrival(Instance instance, ResidentTensor& tensor) noexcept;

  // Ops and frees in the program's order, not yet issued.
  std::deque<Instance> in_order_;
  // Reloads that are with the driver, and whose ranges are not mapped yet.
  struct ReloadUnderWay {
    Instance instance;
    LaneUse copied;
  };
  std::vector<ReloadUnderWay> arrivals_;
  LaneUses unaudited_;  // ops that may touch more than their operands; not those that are known to be complete
};

}  // namespace reprise::replay

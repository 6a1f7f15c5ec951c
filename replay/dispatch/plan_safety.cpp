// What both kinds of safety do alike: a tensor is dropped, and the launch that makes it again is repeated.
#include "replay/dispatch/plan_safety.h"

#include "preload/base/causes.h"
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {

PlanSafety::PlanSafety(PlanExecutor* executor) noexcept
    : executor_(*executor),
      shared_(executor->shared_),
      memory_(executor->memory_),
      activation_(executor->activation_),
      progress_(executor->progress_) {}

// The launch's own stream, or ours where the program has destroyed that since.
LaneIndex PlanSafety::lane_of_repeat(const Command& command) noexcept {
  if (memory_.lanes.is_open(command.stream, command.context)) {
    return memory_.lanes.lane_of(command.stream, command.context);
  }
  if (command.context == shared_.context) return Lanes::kDigests;
  executor_.plan_.failure = phrase<Cause::stream_gone>();
  return kNoLane;
}

// False: there is no place for a digest now.
bool PlanSafety::issue_drop(Instance instance) noexcept {
  const uint32_t tensor = plan_index_->plan.vertices[instance.vertex].tensor;
  const Command& command = executor_.repeats_.launch_that_makes(tensor);
  executor_.issuer_.enter_context(command.context);
  const LaneIndex lane = lane_of_repeat(command);
  if (lane == kNoLane) return false;
  executor_.stalls_.hold(lane, executor_.transfers_.awaited_elsewhere(instance, lane));
  CUresult result = executor_.transfers_.wait_for_predecessors(instance, lane);
  LaneUse use;
  if (result == CUDA_SUCCESS && !executor_.repeats_.drop(tensor, lane, &result, &use)) return false;
  if (result != CUDA_SUCCESS) {
    executor_.plan_.failure = phrase<Cause::not_dropped>();
    return false;
  }
  progress_.issued(instance, use);
  if (use.lane != lane) {  // its bytes are kept for now, and what follows waits for that
    LaneUses copied;
    copied.add(use.lane, use.position);
    executor_.stalls_.hold_next(lane, copied);
  }
  return true;
}

// False: there is no place for its digests now, or it failed.
bool PlanSafety::issue_repeat(Instance instance) noexcept {
  const uint32_t repeat = plan_index_->repeat_of[instance.vertex];
  const Command& command = executor_.repeats_.launch(repeat);
  executor_.issuer_.enter_context(command.context);
  const LaneIndex lane = lane_of_repeat(command);
  if (lane == kNoLane) return false;
  if (!executor_.repeats_.has_room(repeat)) return false;
  executor_.stalls_.hold(lane, executor_.transfers_.awaited_elsewhere(instance, lane));
  if (executor_.transfers_.wait_for_predecessors(instance, lane) != CUDA_SUCCESS ||
      wait_for_fence(instance, lane) != CUDA_SUCCESS) {
    executor_.plan_.failure = phrase<Cause::not_ordered>();
    return false;
  }
  if (!place(instance.vertex, lane)) return false;
  executor_.plan_.compute_lane = lane;
  executor_.stalls_.look_before_issue();
  CUresult result = CUDA_SUCCESS;
  LaneUse use;
  const uint64_t id = executor_.transfers_.activity_id(instance);
  ActivitySource* const activity = id != 0 ? shared_.common.activity.load(std::memory_order_acquire) : nullptr;
  executor_.issuer_.enter_context(command.context);  // placing may have left it
  if (activity != nullptr) activity->push(id, memory_.lanes.stream(lane));
  const bool waited_for = executor_.repeats_.issue(instance, lane, &result, &use);
  if (activity != nullptr) activity->pop(id, memory_.lanes.stream(lane));
  if (result != CUDA_SUCCESS) {
    executor_.plan_.failure = phrase<Cause::launch_not_repeated>();
    return false;
  }
  if (waited_for) {
    progress_.taken(instance);
  } else {
    progress_.issued(instance, use);
  }
  executor_.stalls_.look_behind_issue();
  return true;
}

}  // namespace reprise::replay

// The plan executor's recompute: when tensors are dropped, and launches repeated.
#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {

// The launch's own stream, or ours where the program has destroyed that since.
LaneIndex PlanExecutor::lane_of_repeat(const Command& command) noexcept {
  if (memory_.lanes.is_open(command.stream, command.context)) {
    return memory_.lanes.lane_of(command.stream, command.context);
  }
  if (command.context == shared_.context) return Lanes::kDigests;
  failure_ = "the stream of a launch that the plan repeats is gone";
  return kNoLane;
}

// False: there is no place for a digest now.
bool PlanExecutor::issue_drop(Instance instance) noexcept {
  const uint32_t tensor = plan_index_->plan.vertices[instance.vertex].tensor;
  const Command& command = repeats_.launch_that_makes(tensor);
  issuer_.enter_context(command.context);
  const LaneIndex lane = lane_of_repeat(command);
  if (lane == kNoLane) return false;
  hold(lane, awaited_elsewhere(instance, lane));
  CUresult result = wait_for_predecessors(instance, lane);
  LaneUse use;
  if (result == CUDA_SUCCESS && !repeats_.drop(tensor, lane, &result, &use)) return false;
  if (result != CUDA_SUCCESS) {
    failure_ = "a tensor could not be dropped";
    return false;
  }
  progress_.issued(instance, use);
  if (use.lane != lane) {  // its bytes are kept for now, and what follows waits for that
    LaneUses copied;
    copied.add(use.lane, use.position);
    held_.add(next_on(lane), copied);
  }
  return true;
}

// False: there is no place for its digests now, or it failed.
bool PlanExecutor::issue_repeat(Instance instance) noexcept {
  const uint32_t repeat = plan_index_->repeat_of[instance.vertex];
  const Command& command = repeats_.launch(repeat);
  issuer_.enter_context(command.context);
  const LaneIndex lane = lane_of_repeat(command);
  if (lane == kNoLane) return false;
  if (!repeats_.has_room(repeat)) return false;
  hold(lane, awaited_elsewhere(instance, lane));
  if (wait_for_predecessors(instance, lane) != CUDA_SUCCESS) {
    failure_ = "the driver refused to order two streams";
    return false;
  }
  if (!place(instance.vertex, lane)) return false;
  compute_lane_ = lane;
  look_before_issue();
  CUresult result = CUDA_SUCCESS;
  LaneUse use;
  const uint64_t id = activity_id(instance);
  ActivitySource* const activity = id != 0 ? shared_.activity.load(std::memory_order_acquire) : nullptr;
  issuer_.enter_context(command.context);  // placing may have left it
  if (activity != nullptr) activity->push(id, memory_.lanes.stream(lane));
  const bool waited_for = repeats_.issue(instance, lane, &result, &use);
  if (activity != nullptr) activity->pop(id, memory_.lanes.stream(lane));
  if (result != CUDA_SUCCESS) {
    failure_ = "a launch could not be repeated";
    return false;
  }
  if (waited_for) {
    progress_.taken(instance);
  } else {
    progress_.issued(instance, use);
  }
  look_behind_issue();
  return true;
}

// What repeats have made is what was dropped, or the plan ends. `wait`: for all that was issued.
bool PlanExecutor::check_repeats(bool wait) noexcept {
  if (!repeats_.unchecked()) return false;
  bool progress = false;
  const auto done = [&](Instance instance, LaneUse use) {
    progress = true;
    progress_.issued(instance, use);
  };
  std::string why;
  const bool good = wait ? repeats_.conclude(done, &why) : repeats_.advance(done, &why);
  if (good) return progress;
  repeat_failure_ = why;
  if (failure_ == nullptr) failure_ = repeat_failure_.c_str();
  give_up_facts();
  return true;
}

}  // namespace reprise::replay

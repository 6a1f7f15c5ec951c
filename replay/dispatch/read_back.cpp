// Bytes of tensors on their way to a hook that wants to know what they hold: behind what has been issued so far, on a
// stream of their own, so that waiting for them holds nothing back.
#include <cstring>

#include "preload/driver/driver.h"
#include "replay/dispatch/on_demand.h"

namespace reprise::replay {

// Waits on the device for the work that may write the bytes, and copies them.
CUresult OnDemandExecutor::read_part(const ReadBackPart& part, LaneIndex lane, unsigned char* to) noexcept {
  Lanes& lanes = memory_.lanes;
  const Access access{{part.allocation, 0, part.bytes, trace::kNoParameter, trace::kAccessRead}, part.base};
  ResidentTensor* const tensor = tensor_of(memory_, access);
  CUresult result = CUDA_SUCCESS;
  if (tensor != nullptr && !tensor->is_written()) {  // nothing has written to it
    std::memset(to, 0, part.bytes);
    return CUDA_SUCCESS;
  }
  if (tensor != nullptr) {
    result = pager_.make_resident({tensor});
    if (result == CUDA_SUCCESS) result = auditor.uncover({tensor}, false);
    for (const ResidentTensor* each : {tensor, &memory_.mover_of(*tensor)}) {
      if (result == CUDA_SUCCESS) result = lanes.wait_on(lane, each->ready);
    }
  }
  // Of memory that is not ours, or that too many lanes have used to tell them apart, all that is outstanding counts: to
  // wait for the device here would wait for work that may never end.
  const bool known = tensor != nullptr && !tensor->uses.everything();
  if (known && result == CUDA_SUCCESS) result = lanes.wait_on(lane, tensor->uses);
  if (!known && result == CUDA_SUCCESS) result = wait_for_outstanding(lane);
  if (result == CUDA_SUCCESS) result = lanes.enter_own();
  if (result != CUDA_SUCCESS) return result;
  result = driver().cuMemcpyDtoHAsync(to, part.base + part.offset, part.bytes, lanes.stream(lane));
  const uint64_t position = lanes.advance(lane);
  if (tensor != nullptr) memory_.touched(*tensor, {lane, position}, false);
  if (in_plan_region(access)) memory_.plan_region.uses.add(lane, position);
  return result;
}

CUresult OnDemandExecutor::wait_for_outstanding(LaneIndex lane) noexcept {
  for (const LaneUse& use : memory_.lanes.outstanding()) {
    const CUresult result = memory_.lanes.wait_on(lane, use);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

void OnDemandExecutor::perform_read_back(LogEntry& entry) noexcept {
  Lanes& lanes = memory_.lanes;
  Landing& landing = shared_.landing;
  const ReadBack& request = *entry.read_back;
  CUresult result = lanes.enter_own();
  if (result == CUDA_SUCCESS && !landing.open()) result = CUDA_ERROR_NOT_SUPPORTED;
  if (result == CUDA_SUCCESS) {
    const LaneIndex lane = lanes.lane_of(landing.stream(), shared_.context);
    if (request.after_everything) result = wait_for_outstanding(lane);
    uint64_t landed = 0;
    for (uint32_t i = 0; i < request.count && result == CUDA_SUCCESS; ++i) {
      result = read_part(request.parts[i], lane, landing.memory() + landed);
      landed += request.parts[i].bytes;
    }
    if (result == CUDA_SUCCESS) result = lanes.enter_own();
    if (result == CUDA_SUCCESS) result = landing.mark();
  }
  entry.waiter->done(result);
}

}  // namespace reprise::replay

#include "replay/memory/lanes/lanes.h"

#include "preload/driver/driver.h"
#include "preload/driver/results.h"

namespace reprise::replay {
namespace {

bool is_legacy(CUstream stream) { return stream == nullptr || stream == CU_STREAM_LEGACY; }

bool is_blocking(CUstream stream) {
  unsigned flags = CU_STREAM_NON_BLOCKING;
  return !is_legacy(stream) && driver().cuStreamGetFlags != nullptr &&
         driver().cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS && (flags & CU_STREAM_NON_BLOCKING) == 0;
}

}  // namespace

CUresult Lanes::open(CUcontext context) noexcept {
  current_ = context;
  for (LaneIndex i = 0; i < kOwn; ++i) {
    Lane lane;
    lane.context = context;
    const CUresult result = driver().cuStreamCreate(&lane.stream, CU_STREAM_NON_BLOCKING);
    if (result != CUDA_SUCCESS) return result;
    by_stream_[{lane.stream, context}] = static_cast<LaneIndex>(lanes_.size());
    lanes_.push_back(std::move(lane));
  }
  return CUDA_SUCCESS;
}

LaneIndex Lanes::lane_of(CUstream stream, CUcontext context) noexcept {
  const auto known = by_stream_.find({stream, context});
  if (known != by_stream_.end()) return known->second;
  auto index = static_cast<LaneIndex>(lanes_.size());
  // A closed lane whose work is complete is used again; its positions go on, so that old uses stay meaningful.
  for (size_t i = kOwn; i < lanes_.size() && index == lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!lane.closed || lane.context != context) continue;
    poll(lane);
    if (lane.completed == lane.issued) index = static_cast<LaneIndex>(i);
  }
  if (index == lanes_.size()) lanes_.emplace_back();
  Lane& lane = lanes_[index];
  lane.stream = stream;
  lane.context = context;
  lane.closed = false;
  lane.legacy = is_legacy(stream);
  lane.blocking = is_blocking(stream);
  lane.waited.clear();
  by_stream_[{stream, context}] = index;
  return index;
}

CUresult Lanes::wait_on(LaneIndex waiter, LaneUse use) noexcept {
  if (!awaits(waiter, use)) return CUDA_SUCCESS;
  Lane& self = lanes_[waiter];
  if (self.waited.size() < lanes_.size()) self.waited.resize(lanes_.size(), 0);
  CUresult result = CUDA_SUCCESS;
  const Marker* const marker = marker_for(use.lane, use.position, &result);
  if (marker == nullptr) return result;
  result = enter(self.context);  // a default stream is that of the current context
  if (result == CUDA_SUCCESS) result = driver().cuStreamWaitEvent(self.stream, marker->event, 0);
  if (result == CUDA_SUCCESS) self.waited[use.lane] = marker->position;
  return result;
}

CUresult Lanes::wait_on(LaneIndex waiter, const LaneUses& uses) noexcept {
  if (uses.everything()) return synchronize();
  for (const LaneUse& use : uses) {
    const CUresult result = wait_on(waiter, use);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult Lanes::host_wait(const LaneUses& uses) noexcept {
  if (given_up()) return fault();
  if (uses.everything()) return synchronize();
  for (const LaneUse& use : uses) {
    Lane& lane = lanes_[use.lane];
    if (lane.completed >= use.position) continue;
    CUresult result = CUDA_SUCCESS;
    const Marker* const marker = marker_for(use.lane, use.position, &result);
    if (marker == nullptr && result == CUDA_SUCCESS) continue;
    if (marker == nullptr) return result;
    const uint64_t position = marker->position;
    result = driver().cuEventSynchronize(marker->event);
    if (result != CUDA_SUCCESS) return result;
    complete_until(lane, position);
  }
  return CUDA_SUCCESS;
}

CUresult Lanes::synchronize() noexcept {
  if (given_up()) return fault();
  CUresult result = CUDA_SUCCESS;
  if (!captures_open()) {
    // Not lane by lane: the program may have put work on streams that no lane knows of.
    result = enter_own();
    if (result == CUDA_SUCCESS) result = driver().cuCtxSynchronize();
    for (Lane& lane : lanes_) {
      if (result == CUDA_SUCCESS && lane.context == lanes_[kToDevice].context) complete_until(lane, lane.issued);
    }
  }
  for (size_t i = 0; result == CUDA_SUCCESS && i < lanes_.size(); ++i) result = finish(static_cast<LaneIndex>(i));
  if (is_sticky(result)) note_fault(result);
  return result;
}

CUresult Lanes::close(CUstream stream, CUcontext context) noexcept {
  const auto known = by_stream_.find({stream, context});
  if (known == by_stream_.end()) return driver().cuStreamDestroy(stream);
  Lane& lane = lanes_[known->second];
  mark(known->second);
  const CUresult result = driver().cuStreamDestroy(stream);
  if (result != CUDA_SUCCESS) return result;
  lane.closed = true;
  by_stream_.erase(known);
  return result;
}

void Lanes::leave(CUcontext context) noexcept {
  const bool own = lanes_[kToDevice].context == context;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (lane.context != context) continue;
    finish(static_cast<LaneIndex>(i));
    complete_until(lane, lane.issued);  // also where the device has failed
    by_stream_.erase({lane.stream, context});
    lane.closed = true;
    lane.owes_marker = false;
    if (!own) lane.context = nullptr;  // a new context may get the same handle
  }
  enter(context);
  destroy_events(context);
  if (own) {
    for (LaneIndex lane = 0; lane < kOwn; ++lane) driver().cuStreamDestroy(lanes_[lane].stream);
  } else {
    enter_own();
  }
}

}  // namespace reprise::replay

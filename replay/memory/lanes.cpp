#include "replay/memory/lanes.h"

#include <algorithm>

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

CUresult Lanes::enter(CUcontext context) noexcept {
  if (context == nullptr || context == current_) return CUDA_SUCCESS;
  const CUresult result = driver().cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) current_ = context;
  return result;
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

void Lanes::give_up(CUresult fault) noexcept {
  note_fault(fault);
  given_up_ = true;
  poll();
}

CUresult Lanes::mark(LaneIndex index) noexcept {
  Lane& lane = lanes_[index];
  if (unmarked(index) == 0) return CUDA_SUCCESS;
  if (given_up_) return fault_;
  CUevent event = nullptr;
  CUresult result = enter(lane.context);
  std::vector<CUevent>& spare = spare_events_[lane.context];
  if (!spare.empty()) {
    event = spare.back();
    spare.pop_back();
  } else if (result == CUDA_SUCCESS) {
    result = driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  }
  if (result == CUDA_SUCCESS) result = driver().cuEventRecord(event, lane.stream);
  lane.owes_marker = result != CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) {
    if (event != nullptr) spare.push_back(event);
    return result;
  }
  lane.markers.push_back({lane.issued, event});
  return CUDA_SUCCESS;
}

const Marker* Lanes::marker_for(LaneIndex index, uint64_t position, CUresult* error) noexcept {
  Lane& lane = lanes_[index];
  const auto before = [](const Marker& marker, uint64_t wanted) { return marker.position < wanted; };
  auto found = std::lower_bound(lane.markers.begin(), lane.markers.end(), position, before);
  if (found == lane.markers.end()) {
    *error = lane.closed ? finish(index) : mark(index);
    if (*error != CUDA_SUCCESS || lane.completed >= position) return nullptr;
    found = std::prev(lane.markers.end());
  }
  return &*found;
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

void Lanes::complete_until(Lane& lane, uint64_t position) noexcept {
  lane.completed = std::max(lane.completed, position);
  while (!lane.markers.empty() && lane.markers.front().position <= position) {
    spare_events_[lane.context].push_back(lane.markers.front().event);
    lane.markers.pop_front();
  }
}

CUresult Lanes::host_wait(const LaneUses& uses) noexcept {
  if (given_up_) return fault_;
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

void Lanes::poll(Lane& lane) noexcept {
  if (given_up_) return complete_until(lane, lane.issued);
  while (!lane.markers.empty()) {
    const CUevent event = lane.markers.front().event;
    CUresult result = driver().cuEventQuery(event);
    if (result == CUDA_ERROR_NOT_READY) return;
    // The question failed, which says nothing of the work: waiting for it does.
    if (result != CUDA_SUCCESS && !is_sticky(result)) result = driver().cuEventSynchronize(event);
    // Where neither tells, nothing says any more what has been done.
    if (result != CUDA_SUCCESS) note_fault(is_sticky(result) ? result : CUDA_ERROR_LAUNCH_FAILED);
    complete_until(lane, lane.markers.front().position);
  }
}

// A lane whose marker was refused would never be seen to complete. Not while captures are open: its stream may be
// captured.
void Lanes::pay_marker(LaneIndex index) noexcept {
  Lane& lane = lanes_[index];
  if (!lane.owes_marker || captures_open() || given_up_) return;
  lane.owes_marker = false;
  if (!lane.closed && mark(index) == CUDA_SUCCESS) return;
  const CUresult result = finish(index);
  lane.owes_marker = false;
  if (result == CUDA_SUCCESS) return;
  note_fault(is_sticky(result) ? result : CUDA_ERROR_LAUNCH_FAILED);
  complete_until(lane, lane.issued);
}

void Lanes::poll() noexcept {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    pay_marker(static_cast<LaneIndex>(i));
    poll(lanes_[i]);
  }
}

bool Lanes::complete(LaneUse use) noexcept {
  Lane& lane = lanes_[use.lane];
  if (lane.completed >= use.position) return true;
  CUresult error = CUDA_SUCCESS;
  if (marker_for(use.lane, use.position, &error) == nullptr && error != CUDA_SUCCESS) {
    // Whoever asks again would wait for good: a failed device takes no marker any more.
    if (is_sticky(error)) note_fault(error);
    return false;
  }
  poll(lane);
  return lane.completed >= use.position;
}

bool Lanes::known_complete(const LaneUses& uses) const noexcept {
  if (uses.everything()) return false;
  return std::all_of(uses.begin(), uses.end(), [this](const LaneUse& use) { return known_complete(use); });
}

bool Lanes::complete(const LaneUses& uses) noexcept {
  if (uses.everything()) return false;
  return std::all_of(uses.begin(), uses.end(), [this](const LaneUse& use) { return complete(use); });
}

std::vector<LaneUse> Lanes::outstanding() const noexcept {
  std::vector<LaneUse> uses;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].completed < lanes_[i].issued) uses.push_back({static_cast<LaneIndex>(i), lanes_[i].issued});
  }
  return uses;
}

CUresult Lanes::mark_all() noexcept {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const CUresult marked = lanes_[i].closed ? CUDA_SUCCESS : mark(static_cast<LaneIndex>(i));
    if (result == CUDA_SUCCESS) result = marked;
  }
  return result;
}

// By its last marker; where there is none, because the driver once refused, by its context.
CUresult Lanes::finish(LaneIndex index) noexcept {
  Lane& lane = lanes_[index];
  if (given_up_) return fault_;
  if (lane.completed >= lane.issued) return CUDA_SUCCESS;
  CUresult result = lane.closed ? CUDA_SUCCESS : mark(index);
  if (is_sticky(result)) return result;
  if (!lane.markers.empty() && lane.markers.back().position >= lane.issued) {
    result = driver().cuEventSynchronize(lane.markers.back().event);
  } else if (captures_open()) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else {
    result = enter(lane.context);
    if (result == CUDA_SUCCESS) result = driver().cuCtxSynchronize();
  }
  if (result == CUDA_SUCCESS) complete_until(lane, lane.issued);
  return result;
}

CUresult Lanes::synchronize() noexcept {
  if (given_up_) return fault_;
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
  for (const CUevent event : spare_events_[context]) driver().cuEventDestroy(event);
  spare_events_.erase(context);
  if (own) {
    for (LaneIndex lane = 0; lane < kOwn; ++lane) driver().cuStreamDestroy(lanes_[lane].stream);
  } else {
    enter_own();
  }
}

}  // namespace reprise::replay

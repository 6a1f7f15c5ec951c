#include "replay/memory/lanes/lane_progress.h"

#include <algorithm>

#include "preload/driver/driver.h"
#include "preload/driver/results.h"

namespace reprise::replay {

CUresult LaneProgress::enter(CUcontext context) noexcept {
  if (context == nullptr || context == current_) return CUDA_SUCCESS;
  const CUresult result = driver().cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) current_ = context;
  return result;
}

void LaneProgress::give_up(CUresult fault) noexcept {
  note_fault(fault);
  given_up_ = true;
  poll();
}

CUresult LaneProgress::mark(LaneIndex index) noexcept {
  Lane& lane = lanes_[index];
  if (lane.unmarked() == 0) return CUDA_SUCCESS;
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

const Marker* LaneProgress::marker_for(LaneIndex index, uint64_t position, CUresult* error) noexcept {
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

void LaneProgress::complete_until(Lane& lane, uint64_t position) noexcept {
  lane.completed = std::max(lane.completed, position);
  while (!lane.markers.empty() && lane.markers.front().position <= position) {
    spare_events_[lane.context].push_back(lane.markers.front().event);
    lane.markers.pop_front();
  }
}

void LaneProgress::poll(Lane& lane) noexcept {
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
void LaneProgress::pay_marker(LaneIndex index) noexcept {
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

void LaneProgress::poll() noexcept {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    pay_marker(static_cast<LaneIndex>(i));
    poll(lanes_[i]);
  }
}

bool LaneProgress::complete(LaneUse use) noexcept {
  Lane& lane = lanes_[use.lane];
  if (lane.completed >= use.position) return true;
  CUresult error = CUDA_SUCCESS;
  if (marker_for(use.lane, use.position, &error) == nullptr && error != CUDA_SUCCESS) {
    // A failed device takes no marker any more, so a caller that asks again would wait forever.
    if (is_sticky(error)) note_fault(error);
    return false;
  }
  poll(lane);
  return lane.completed >= use.position;
}

bool LaneProgress::known_complete(const LaneUses& uses) const noexcept {
  if (uses.everything()) return false;
  return std::all_of(uses.begin(), uses.end(), [this](const LaneUse& use) { return known_complete(use); });
}

bool LaneProgress::complete(const LaneUses& uses) noexcept {
  if (uses.everything()) return false;
  return std::all_of(uses.begin(), uses.end(), [this](const LaneUse& use) { return complete(use); });
}

std::vector<LaneUse> LaneProgress::outstanding() const noexcept {
  std::vector<LaneUse> uses;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].completed < lanes_[i].issued) uses.push_back({static_cast<LaneIndex>(i), lanes_[i].issued});
  }
  return uses;
}

CUresult LaneProgress::mark_all() noexcept {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const CUresult marked = lanes_[i].closed ? CUDA_SUCCESS : mark(static_cast<LaneIndex>(i));
    if (result == CUDA_SUCCESS) result = marked;
  }
  return result;
}

// By its last marker; where there is none, because the driver once refused, by its context.
CUresult LaneProgress::finish(LaneIndex index) noexcept {
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

void LaneProgress::destroy_events(CUcontext context) noexcept {
  for (const CUevent event : spare_events_[context]) driver().cuEventDestroy(event);
  spare_events_.erase(context);
}

}  // namespace reprise::replay

#include "replay/plans/recorded_calls.h"

#include <algorithm>
#include <iterator>

namespace reprise::replay {
namespace {

using Alive = std::pair<uint64_t, LiveAllocation>;

// Has each of these been handed over to one of those, which lies where it was?
bool same_places(const std::vector<Alive>& before, const std::vector<Alive>& after) noexcept {
  const auto places = [](const std::vector<Alive>& all) {
    std::vector<std::pair<CUdeviceptr, uint64_t>> of;
    of.reserve(all.size());
    for (const auto& [id, allocation] : all) of.emplace_back(allocation.address, allocation.size);
    std::sort(of.begin(), of.end());
    return of;
  };
  return places(before) == places(after);
}

}  // namespace

void RecordedCalls::begin_stretch(PlanFollower* follower, uint64_t sequence, uint64_t quiet) noexcept {
  anew_ = false;
  from_call_ = sequence;
  follower->repetition().detector().restart(quiet);
}

bool RecordedCalls::begin_with_next() noexcept {
  anew_ = !records_;
  return records_;
}

void RecordedCalls::follow(PlanFollower* follower, uint64_t sequence) noexcept {
  const bool records = may_record_ && !follower->following();
  if (records && records_) ++calls_;
  if (records == records_ || recorder_ == nullptr) return;
  records_ = records;
  if (records) return resume(follower, sequence);
  paused_after_ = sequence - 1;
  paused_for_plan_ = follower->following();
  follower->take_whole();
  const LiveAllocations::Map& live = follower->live().all();
  alive_at_pause_.assign(live.begin(), live.end());
  shared_.common.recording.store(false, std::memory_order_relaxed);
  recorder_->pause();
}

void RecordedCalls::resume(PlanFollower* follower, uint64_t sequence) noexcept {
  std::vector<Alive> freed;
  std::vector<Alive> allocated;
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  const LiveAllocations::Map& live = follower->live().all();
  std::set_difference(alive_at_pause_.begin(), alive_at_pause_.end(), live.begin(), live.end(),
                      std::back_inserter(freed), earlier);
  std::set_difference(live.begin(), live.end(), alive_at_pause_.begin(), alive_at_pause_.end(),
                      std::back_inserter(allocated), earlier);
  const bool seam = follower->take_whole() && paused_for_plan_ && same_places(freed, allocated);
  recorder_->resume(paused_after_, sequence, seam);
  for (const auto& [id, allocation] : freed) {
    FreeCall call{};
    call.allocation = id;
    call.origin = allocation.origin;
    recorder_->freed(call, sequence, trace::kCaughtUp);
  }
  for (const auto& [id, allocation] : allocated) {
    AllocateCall call{};
    call.size = allocation.size;
    call.origin = allocation.origin;
    call.device = shared_.device;
    recorder_->allocated(id, call, allocation.address, sequence, 0, trace::kCaughtUp);
  }
  ActivitySource* const activity = shared_.common.activity.load();
  if (activity != nullptr && !activity->running()) activity->start();
  shared_.common.recording.store(activity != nullptr, std::memory_order_relaxed);
  if (anew_) begin_stretch(follower, sequence, 0);
}

void RecordedCalls::stop() noexcept {
  may_record_ = records_ = false;
  shared_.common.recording.store(false, std::memory_order_relaxed);
  if (recorder_ != nullptr) recorder_->pause();
}

// A source that goes on costs each call of the driver, and CUPTI keeps other profilers away.
void collect_activity(Recorder* recorder, Common& common) noexcept {
  ActivitySource* const activity = common.activity.load(std::memory_order_acquire);
  if (recorder == nullptr || activity == nullptr) return;
  const bool recording = common.recording.load(std::memory_order_relaxed);
  if (!recording && (common.sampling.load(std::memory_order_acquire) || !activity->running())) return;
  if (common.collecting.exchange(true, std::memory_order_acquire)) return;
  recorder->collect(*activity);
  if (!recording) activity->stop();
  common.collecting.store(false, std::memory_order_release);
}

}  // namespace reprise::replay

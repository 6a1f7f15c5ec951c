// How long the device has nothing to run although the program has submitted work, for the run log's stall_ns. The host
// sees that at its looks alone: in each step, and before an op is issued behind what has held the host up.
//
//     looks     |           |  map, map  |  map, map  | issue      |
//     device      ---- op A ------|                     - op B ----
//     counted               |   a half   |    all     |  nothing
//
// That an op has ended shows at a marker behind it, so none may stand behind what the next op waits for: then the lane
// would look busy as long as it waits.
#include <algorithm>

#include "replay/dispatch/plan_executor.h"

namespace reprise::replay {

// Work on other lanes that the vertex will be told to wait for.
LaneUses PlanExecutor::awaited_elsewhere(Instance instance, LaneIndex lane) const noexcept {
  LaneUses uses;
  const auto add = [&](LaneUse use) {
    if (memory_.lanes.awaits(lane, use)) uses.add(use.lane, use.position);
  };
  for (const Edge& edge : plan_index_->waits[instance.vertex]) {
    if (instance.iteration < progress_.first() + edge.distance) continue;
    add(progress_.use({instance.iteration - edge.distance, edge.vertex}));
  }
  const std::vector<uint64_t>& fence = safety_->fence();
  for (size_t other = 0; other < fence.size(); ++other) add({static_cast<LaneIndex>(other), fence[other]});
  return uses;
}

// Where the next work that is issued to the lane will be.
LaneUse PlanExecutor::next_on(LaneIndex lane) noexcept {
  const auto others =
      std::count_if(granted_.begin(), granted_.end(), [lane](const Granted& granted) { return granted.lane == lane; });
  return {lane, memory_.lanes[lane].issued + static_cast<uint64_t>(others) + 1};
}

// Before the lane is told to wait for this: what is issued to it next is held. So is what the driver keeps in order
// behind something that is held.
void PlanExecutor::hold(LaneIndex lane, LaneUses awaited) noexcept {
  const bool waits = !awaited.empty();
  if (waits) memory_.lanes.mark(lane);
  for (size_t i = Lanes::kOwn; (waits || !held_.empty()) && i < memory_.lanes.size(); ++i) {
    const auto other = static_cast<LaneIndex>(i);
    if (!memory_.lanes.in_driver_order(lane, other)) continue;
    if (waits && !memory_.lanes[other].closed) memory_.lanes.mark(other);
    if (held_.any_on(other)) awaited.add(other, memory_.lanes[other].issued);
  }
  if (!awaited.empty()) held_.add(next_on(lane), awaited);
}

// The program's events: a wait for one is a wait for all that was on the other lane when it was recorded, which may be
// more than what the program had called.
void PlanExecutor::event_recorded(const LogEntry& entry) noexcept {
  std::erase_if(recorded_,
                [&](const Recorded& one) { return one.event == entry.event || memory_.lanes.known_complete(one.at); });
  const LaneIndex lane = memory_.lanes.lane_of(entry.command.stream, entry.command.context);
  recorded_.push_back({entry.event, {lane, memory_.lanes[lane].issued}});
}

void PlanExecutor::hold_for_event(const LogEntry& entry) noexcept {
  const auto found =
      std::find_if(recorded_.begin(), recorded_.end(), [&](const Recorded& one) { return one.event == entry.event; });
  const LaneIndex lane = memory_.lanes.lane_of(entry.command.stream, entry.command.context);
  if (found == recorded_.end() || !memory_.lanes.awaits(lane, found->at)) return;
  if (!memory_.lanes[found->at.lane].closed) memory_.lanes.mark(found->at.lane);
  LaneUses awaited;
  awaited.add(found->at.lane, found->at.position);
  hold(lane, awaited);
}

// Has the program submitted work, of which none can run? As of the last Lanes::poll().
bool PlanExecutor::runs_dry() noexcept {
  held_.let_go(memory_.lanes);
  bool submitted = progress_.unissued_submitted() > 0 || next_ != seen_tail_;
  for (size_t i = Lanes::kOwn; i < memory_.lanes.size(); ++i) {
    const auto lane = static_cast<LaneIndex>(i);
    const uint64_t next = memory_.lanes[lane].completed + 1;
    if (next == next_on(lane).position) continue;
    if (!held_.is_held({lane, next})) return false;
    submitted = true;
  }
  return submitted;
}

// When the device turned from one to the other between two looks was seen by nobody: half of that time counts.
void PlanExecutor::look_at_device() noexcept {
  const uint64_t now = RunLogWriter::now_ns();
  const bool dry = runs_dry();
  const uint64_t passed = looked_ns_ == 0 ? 0 : now - looked_ns_;
  stopwatch_.stalled((passed * dry + passed * was_dry_) / 2);
  looked_ns_ = now;
  was_dry_ = dry;
  looked_at_calls_ = memory_.mappings.driver_calls();
}

// An op is about to be issued. Mapping has held the host up since the last look, or the op ends a stall.
void PlanExecutor::look_before_issue() noexcept {
  const bool held_up = memory_.mappings.driver_calls() != looked_at_calls_;
  if (held_up) memory_.lanes.poll();
  if (held_up || was_dry_) look_at_device();
}

void PlanExecutor::look_behind_issue() noexcept {
  if (was_dry_) was_dry_ = runs_dry();
}

}  // namespace reprise::replay

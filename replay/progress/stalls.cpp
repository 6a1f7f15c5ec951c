#include "replay/progress/stalls.h"

#include <algorithm>

namespace reprise::replay {
namespace {

// Access is granted to so many chunks that it takes about this long: copies and ops that the driver has last meanwhile.
constexpr uint64_t kGrantSlice = 500'000;  // ns

}  // namespace

void Stalls::begin() noexcept {
  held_.clear();
  recorded_.clear();
  looked_ns_ = 0;
}

// Where the next work that is issued to the lane will be.
LaneUse Stalls::next_on(LaneIndex lane) noexcept {
  const auto others = std::count_if(granted_.begin(), granted_.end(),
                                    [lane](const GrantedOp& granted) { return granted.lane == lane; });
  return {lane, memory_.lanes[lane].issued + static_cast<uint64_t>(others) + 1};
}

void Stalls::hold(LaneIndex lane, LaneUses awaited) noexcept {
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

void Stalls::event_recorded(const LogEntry& entry) noexcept {
  std::erase_if(recorded_,
                [&](const Recorded& one) { return one.event == entry.event || memory_.lanes.known_complete(one.at); });
  const LaneIndex lane = memory_.lanes.lane_of(entry.command.stream, entry.command.context);
  recorded_.push_back({entry.event, {lane, memory_.lanes[lane].issued}});
}

void Stalls::hold_for_event(const LogEntry& entry) noexcept {
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
bool Stalls::runs_dry() noexcept {
  held_.let_go(memory_.lanes);
  bool submitted = progress_.unissued_submitted() > 0 || intake_.behind();
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
void Stalls::look() noexcept {
  const uint64_t now = RunLogWriter::now_ns();
  const bool dry = runs_dry();
  const uint64_t passed = looked_ns_ == 0 ? 0 : now - looked_ns_;
  stopwatch_.stalled((passed * dry + passed * was_dry_) / 2);
  looked_ns_ = now;
  was_dry_ = dry;
  looked_at_calls_ = memory_.mappings.driver_calls();
}

void Stalls::look_before_issue() noexcept {
  const bool held_up = memory_.mappings.driver_calls() != looked_at_calls_;
  if (held_up) memory_.lanes.poll();
  if (held_up || was_dry_) look();
}

void Stalls::look_behind_issue() noexcept {
  if (was_dry_) was_dry_ = runs_dry();
}

CUresult Stalls::map(CUdeviceptr base, const std::vector<ChunkIndex>& chunks) noexcept {
  look_before_issue();
  CUresult result = memory_.mappings.begin(base, chunks);
  for (uint64_t mapped = 0; result == CUDA_SUCCESS && mapped < chunks.size(); mapped += kMapSlice) {
    result = memory_.mappings.extend(base, kMapSlice);
    look_before_issue();
  }
  while (result == CUDA_SUCCESS && !memory_.mappings.find(base)->accessible) {
    result = grant_some(base);
    look_before_issue();
  }
  return result;
}

CUresult Stalls::grant_some(CUdeviceptr base) noexcept {
  const Mapping& mapping = *memory_.mappings.find(base);
  const uint64_t before = mapping.granted;
  const uint64_t begun_ns = RunLogWriter::now_ns();
  const CUresult result = memory_.mappings.grant(base, std::max<uint64_t>(kGrantSlice / chunk_grant_ns_, 1));
  if (result != CUDA_SUCCESS) return result;
  const uint64_t count = std::max<uint64_t>(mapping.granted - before, 1);
  chunk_grant_ns_ = std::max<uint64_t>((RunLogWriter::now_ns() - begun_ns) / count, 1);
  return CUDA_SUCCESS;
}

}  // namespace reprise::replay

// Ops that are with the driver and wait there for other lanes: for a tensor that comes back, for room, or for work on
// another stream. As long as one is the next of its lane nothing runs on that lane, however much was issued behind it.
// The plan executor keeps them, for the run log's stall_ns. Dispatcher thread only; few at a time.
#pragma once
#include <algorithm>
#include <vector>

#include "replay/memory/lanes/lanes.h"

namespace reprise::replay {

class HeldOps {
 public:
  // `at`: where the op is issued. Of more lanes than LaneUses can tell apart it is not known when they are done.
  void add(LaneUse at, const LaneUses& waits) noexcept {
    if (waits.everything()) return;
    const auto same = [at](const Held& one) { return one.at.lane == at.lane && one.at.position == at.position; };
    const auto known = std::find_if(held_.begin(), held_.end(), same);  // what was to be issued there was put off
    if (known != held_.end()) return known->waits.merge(waits);
    held_.push_back({at, waits});
  }
  void clear() noexcept { held_.clear(); }
  bool empty() const noexcept { return held_.empty(); }

  // Those that wait no more, as of the last Lanes::poll(), are no longer held.
  void let_go(const Lanes& lanes) noexcept {
    std::erase_if(held_,
                  [&](const Held& one) { return lanes.known_complete(one.at) || lanes.known_complete(one.waits); });
  }
  bool any_on(LaneIndex lane) const noexcept {
    return std::any_of(held_.begin(), held_.end(), [lane](const Held& one) { return one.at.lane == lane; });
  }
  bool is_held(LaneUse at) const noexcept {
    return std::any_of(held_.begin(), held_.end(),
                       [at](const Held& one) { return one.at.lane == at.lane && one.at.position == at.position; });
  }

 private:
  struct Held {
    LaneUse at;
    LaneUses waits;
  };
  std::vector<Held> held_;
};

}  // namespace reprise::replay

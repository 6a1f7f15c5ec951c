// Ops that are with the driver and wait there for transfers: for a tensor that comes back, or for room. As long as one
// is the next of its stream the device has nothing to run there, however much was issued behind it. The plan executor
// keeps them, for the run log's stall_ns. Dispatcher thread only; few at a time.
#pragma once
#include <vector>

#include "replay/memory/lanes.h"

namespace reprise::replay {

class HeldOps {
 public:
  // `at`: where the op was issued.
  void add(LaneUse at, const LaneUses& transfers) noexcept { held_.push_back({at, transfers}); }
  void clear() noexcept { held_.clear(); }

  // As of the last Lanes::poll().
  bool any_is_next(LaneIndex lane, Lanes& lanes) noexcept {
    std::erase_if(held_, [&](const Held& one) { return lanes.known_complete(one.at) || came(one, lanes); });
    for (const Held& one : held_) {
      if (one.at.lane == lane && one.at.position == lanes[lane].completed + 1) return true;
    }
    return false;
  }

 private:
  struct Held {
    LaneUse at;
    LaneUses transfers;
  };
  static bool came(const Held& one, const Lanes& lanes) noexcept {
    return !one.transfers.everything() && lanes.known_complete(one.transfers);
  }

  std::vector<Held> held_;
};

}  // namespace reprise::replay

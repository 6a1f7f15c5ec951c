// What all work that is issued from now on has to wait for, on whatever lane. Caller: StrictSafety, for work that may
// touch unseen what was allocated in memory of others.
#pragma once
#include <algorithm>
#include <vector>

#include "replay/memory/lanes/lanes.h"

namespace reprise::replay {

class Fence {
 public:
  void add(Lanes& lanes, const LaneUses& uses) noexcept {
    until_.resize(lanes.size(), 0);
    for (const LaneUse& use : uses) until_[use.lane] = std::max(until_[use.lane], use.position);
    for (size_t lane = 0; uses.everything() && lane < until_.size(); ++lane) {
      until_[lane] = lanes[static_cast<LaneIndex>(lane)].issued;
    }
  }
  CUresult before_work(Lanes& lanes, LaneIndex lane) const noexcept {
    for (size_t other = 0; other < until_.size(); ++other) {
      const CUresult result = lanes.wait_on(lane, LaneUse{static_cast<LaneIndex>(other), until_[other]});
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  }

 private:
  std::vector<uint64_t> until_;  // by lane: a position on it
};

}  // namespace reprise::replay

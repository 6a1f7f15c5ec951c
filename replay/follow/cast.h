// Which live allocations stand for a plan's persistent tensors when its iteration begins: as the iteration before has
// used them, if the program has just gone through one, else in the order of their allocation, as the recording found
// them. Caller: the plan follower.
#pragma once
#include <cuda.h>

#include <vector>

#include "replay/follow/known_plan.h"
#include "replay/follow/live_allocations.h"

namespace reprise::replay {

class Cast {
 public:
  // `plans`: where plans' tensors lie. false: none stand for them; the plan is told what differs.
  bool find(KnownPlan* known, const LiveAllocations& live, const Zone& plans, uint64_t now) noexcept;
  // Those found last, in the plan's order.
  const std::vector<CUdeviceptr>& addresses() const noexcept { return addresses_; }

 private:
  bool as_rehearsed(const KnownPlan& known, const LiveAllocations& live, const Zone& plans) noexcept;
  bool in_order(KnownPlan* known, const LiveAllocations& live, const Zone& plans) noexcept;

  std::vector<CUdeviceptr> addresses_;
};

}  // namespace reprise::replay

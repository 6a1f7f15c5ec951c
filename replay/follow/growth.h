// What sizes an iteration has that differs from its plan in nothing else: it is followed to its end, whatever they are.
// A plan for one size that was left for two others should be one for varying sizes, and such a plan that was left a
// larger one. Caller: the plan follower.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "replay/follow/known_plan.h"
#include "replay/follow/live_allocations.h"
#include "replay/plan/matcher.h"
#include "replay/plan/rehearsal.h"

namespace reprise::replay {

class Growth {
 public:
  // The program left plan number `plan` before a call that may differ from the plan's next call in its size alone.
  void begin(uint32_t plan, const Matcher& matcher, const LiveAllocations& live, const Zone& arena) noexcept;
  // Follows the call if it may differ from the first call of one of these plans in its size alone.
  void begin(const std::vector<KnownPlan>& plans, const CalledAs& call, size_t alive, const Zone& arena) noexcept;
  // Forgets the iteration that is followed.
  void stop() noexcept { follows_.reset(); }
  // One call, from that one on; `same(Rehearsal*)`: is it the one that is expected? true: the iteration is over, and
  // another plan is wanted.
  template <typename Same>
  bool add(Same same) noexcept;

  uint32_t plan() const noexcept { return plan_; }
  const PlanIndex& index() const noexcept { return *index_; }
  // The largest sizes of the plan and of the iterations that it was left for, and some more where it is not the first
  // that was left so, by the allocations that its tensors were when they were recorded.
  std::vector<std::pair<uint64_t, uint64_t>> sizes_by_allocation() const noexcept;

 private:
  struct SizesSeen {
    std::vector<uint64_t> largest;
    uint64_t first = 0;  // hash of the sizes that the first iteration had
  };
  bool takes_another_plan() noexcept;

  uint32_t plan_ = 0;
  const PlanIndex* index_ = nullptr;
  std::optional<Rehearsal> follows_;
  std::map<uint32_t, SizesSeen> seen_;  // by plan
};

template <typename Same>
bool Growth::add(Same same) noexcept {
  if (!follows_ || (same(&*follows_) && !follows_->is_over())) return false;
  const bool wanted = follows_->is_over() && takes_another_plan();
  follows_.reset();
  return wanted;
}

}  // namespace reprise::replay

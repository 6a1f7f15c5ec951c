// Plans of earlier runs in this one: known from its first call on, a guess until one has come in force, and with the
// budget that their own run had. Caller: PlanSession, under the submission lock.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "preload/base/config.h"
#include "replay/follow/plan_follower.h"
#include "replay/issue/shared.h"
#include "replay/plans/kept_plans.h"
#include "replay/plans/planner_process.h"

namespace reprise::replay {

class EarlierPlans {
 public:
  EarlierPlans(const Config& config, Shared* shared, PlanFollower* follower) noexcept
      : config_(config), shared_(*shared), follower_(*follower) {}

  // Takes those of this program; they have the first numbers. `fixed_budget`: in bytes, 0: a percentage. How many.
  uint32_t open(uint64_t fixed_budget) noexcept;
  // For each call, when the follower has said what it is. true: one of them comes in force for the first time.
  bool follow(const FollowedCall& step) noexcept;
  // For plans of this run; nullptr: none are kept.
  const std::shared_ptr<KeptPlans>& store() const noexcept { return store_; }

 private:
  bool begin(uint32_t plan) noexcept;

  const Config& config_;
  Shared& shared_;
  PlanFollower& follower_;
  std::shared_ptr<KeptPlans> store_;
  std::vector<std::string> paths_;    // by number; "": it was in force
  std::optional<uint32_t> on_trial_;  // for this one the budget was raised, and it has ruled nothing yet
  uint64_t raised_before_ = 0;
};

// Behind the addresses of the `plans` plans before: tensors that one of them has allocated may live on under another.
PlanPlace next_place(const Shared& shared, uint32_t plans) noexcept;

}  // namespace reprise::replay

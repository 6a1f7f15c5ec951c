#include "replay/plans/earlier_plans.h"

#include <utility>

#include "preload/base/causes.h"
#include "preload/driver/driver.h"
#include "preload/facts/store.h"
#include "replay/plans/plan_words.h"

namespace reprise::replay {
namespace {

// One part in this many of the plans' addresses is reserved for small tensors.
constexpr uint64_t kSlabShare = 16;

}  // namespace

PlanPlace next_place(const Shared& shared, uint32_t plans) noexcept {
  const Zone& zone = shared.arena.plan;
  uint64_t at = zone.bytes / kSlabShare / shared.chunk_bytes * shared.chunk_bytes;
  if (plans > 0) {
    const Zone& last = shared.plans[plans - 1].load(std::memory_order_relaxed)->ranges;
    at = last.base + last.bytes - zone.base;
  }
  return {zone, at, shared.chunk_bytes};
}

uint32_t EarlierPlans::open(uint64_t fixed_budget) noexcept {
  const std::string folder = facts::folder_of_plans(config_.facts);
  char device[256] = {};
  if (folder.empty() || driver().cuDeviceGetName(device, sizeof device - 1, shared_.device) != CUDA_SUCCESS) return 0;
  store_ = std::make_shared<KeptPlans>(folder, facts::folder_of_facts(config_.facts),
                                       use_of_process(config_, shared_.safety, shared_.chunk_bytes, device));
  uint32_t count = 0;
  std::vector<std::string> problems;
  for (KeptPlan& known : store_->load(&problems)) {
    if (fixed_budget != 0 && !is_of_budget(known.plan, fixed_budget)) continue;
    const PlanPlace place = next_place(shared_, count);
    auto index = std::make_unique<PlanIndex>();
    std::string why;
    if (!make_plan_index(std::move(known.plan), place.zone, place.chunk_bytes, index.get(), &why, shared_.safety,
                         place.ranges_at)) {
      say<Cause::plan_kept_unfit>(why);
      continue;
    }
    index->is_guess = true;
    paths_.push_back(known.path);
    follower_.use(index.get());
    shared_.plans[count++].store(index.release(), std::memory_order_release);  // lives as long as the process
  }
  for (const std::string& problem : problems) say<Cause::plan_kept_unreadable>(problem);
  return count;
}

bool EarlierPlans::follow(const FollowedCall& step) noexcept {
  if (on_trial_ && !follower_.following()) {
    if (!follower_.has_ruled(*on_trial_)) shared_.counters.raised_bytes.store(raised_before_);
    on_trial_.reset();
  }
  return step.activate && step.plan < paths_.size() && begin(step.plan);
}

// A percentage is of a peak that this run has not come to yet: its plan's own run had, and the loop is the same. If the
// program leaves it at once, that was a guess.
bool EarlierPlans::begin(uint32_t plan) noexcept {
  const PlanIndex& index = follower_.known(plan).index();
  std::atomic<uint64_t>& raised = shared_.counters.raised_bytes;
  if (config_.budget.fraction > 0 && raised.load() < index.plan.budget_bytes) {
    on_trial_ = plan;
    raised_before_ = raised.exchange(index.plan.budget_bytes);
  }
  if (paths_[plan].empty()) return false;
  write_plan(shared_.run_log, index, {plan, paths_[plan], 0, 0, std::nullopt, true});
  store_->used(std::exchange(paths_[plan], {}));
  return true;
}

}  // namespace reprise::replay

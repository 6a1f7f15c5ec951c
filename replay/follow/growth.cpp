#include "replay/follow/growth.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "preload/trace/signature.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kAhead = 8;  // part of a size
}  // namespace

void Growth::begin(uint32_t plan, const Matcher& matcher, const LiveAllocations& live, const Zone& arena) noexcept {
  plan_ = plan;
  index_ = &matcher.index();
  std::unordered_map<CUdeviceptr, uint64_t> at;
  for (const auto& [id, allocation] : live.all()) at[allocation.address] = id;
  std::vector<uint64_t> stands(index_->plan.tensors.size(), Rehearsal::kUnknown);
  for (uint32_t tensor = 0; tensor < stands.size(); ++tensor) {
    const auto found = at.find(matcher.address_of(tensor));
    if (found != at.end()) stands[tensor] = found->second;
  }
  follows_.emplace(index_, arena, matcher.cursor(), std::move(stands));
}

void Growth::begin(const std::vector<KnownPlan>& plans, const CalledAs& call, size_t alive,
                   const Zone& arena) noexcept {
  for (auto plan = static_cast<uint32_t>(plans.size()); plan-- > 0 && !follows_;) {
    const PlanIndex& index = plans[plan].index();
    const plan::Call& first = index.plan.calls[0];
    const bool may_be = first.kind == call.kind && alive == index.persistent_count &&
                        (first.signature == call.signature || structure_of(first) == call.structure);
    if (!may_be) continue;
    plan_ = plan;
    index_ = &index;
    CallCursor start;
    start.begin(index_, 0);
    follows_.emplace(index_, arena, start, std::vector<uint64_t>(index.plan.tensors.size(), Rehearsal::kUnknown));
  }
}

// Two iterations of one size in a row have a plan of their own, which moves less.
bool Growth::takes_another_plan() noexcept {
  const std::vector<plan::Tensor>& tensors = index_->plan.tensors;
  SizesSeen& seen = seen_[plan_];
  seen.largest.resize(tensors.size(), 0);
  bool larger = false;
  bool differs = false;
  uint64_t hash = 1;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const uint64_t size = follows_->sizes()[tensor];
    hash = trace::hash_mix(hash, size);
    larger = larger || size > tensors[tensor].size;
    differs = differs || (size != 0 && size != tensors[tensor].size);
    seen.largest[tensor] = std::max({seen.largest[tensor], size, tensors[tensor].size});
  }
  if (plan::sizes_vary(index_->plan)) return larger;
  if (seen.first == 0 && differs) seen.first = hash;
  return differs && hash != seen.first;
}

// What has outgrown one plan for varying sizes may outgrow the next one soon, as a cache does that grows with each
// step.
std::vector<std::pair<uint64_t, uint64_t>> Growth::sizes_by_allocation() const noexcept {
  std::vector<std::pair<uint64_t, uint64_t>> sizes;
  const std::vector<uint64_t>& largest = seen_.at(plan_).largest;
  const bool again = plan::sizes_vary(index_->plan);
  for (size_t t = index_->persistent_count; t < largest.size(); ++t) {
    const plan::Tensor& tensor = index_->plan.tensors[t];
    const uint64_t ahead = again && largest[t] > tensor.size ? largest[t] / kAhead : 0;
    sizes.emplace_back(tensor.recorded_allocation, largest[t] + ahead);
  }
  return sizes;
}

}  // namespace reprise::replay

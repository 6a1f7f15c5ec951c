#include "replay/follow/cast.h"

#include <algorithm>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

// They may lie where another plan has put them, but small ones there share places with those of this plan.
const char* why_not(const KnownPlan& known, size_t tensor, const LiveAllocation& live, const Zone& plans) noexcept {
  const plan::Tensor& wanted = known.plan().tensors[tensor];
  const bool any_size = known.index().moves_in_handover(static_cast<uint32_t>(tensor)) && live.size <= wanted.size;
  if (!any_size && live.size != wanted.size) return phrase<Cause::cast_of_other_sizes>();
  const bool in_the_way =
      known.index().ranges.contains(live.address) || (wanted.chunk_count == 0 && plans.contains(live.address));
  return in_the_way ? phrase<Cause::cast_in_the_way>() : nullptr;
}

}  // namespace

bool Cast::find(KnownPlan* known, const LiveAllocations& live, const Zone& plans, uint64_t now) noexcept {
  return (known->was_rehearsed(now) && as_rehearsed(*known, live, plans)) || in_order(known, live, plans);
}

bool Cast::in_order(KnownPlan* known, const LiveAllocations& live, const Zone& plans) noexcept {
  addresses_.clear();
  for (const auto& [id, allocation] : live.all()) {
    const char* const difference = why_not(*known, addresses_.size(), allocation, plans);
    known->differs(difference);
    if (difference != nullptr) return false;
    addresses_.push_back(allocation.address);
  }
  return true;
}

// Any allocation of its size may stand for a tensor that the iteration did not use.
bool Cast::as_rehearsed(const KnownPlan& known, const LiveAllocations& live, const Zone& plans) noexcept {
  const size_t count = known.index().persistent_count;
  const std::vector<uint64_t>& roles = known.roles();
  std::vector<uint64_t> used(roles.begin(), roles.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase(used, Rehearsal::kUnknown);
  std::sort(used.begin(), used.end());
  if (std::adjacent_find(used.begin(), used.end()) != used.end()) return false;
  std::vector<LiveAllocation> unused;
  for (const auto& [id, allocation] : live.all()) {
    if (!std::binary_search(used.begin(), used.end(), id)) unused.push_back(allocation);
  }
  addresses_.clear();
  for (size_t tensor = 0; tensor < count; ++tensor) {
    LiveAllocation chosen;
    if (roles[tensor] != Rehearsal::kUnknown) {
      const auto found = live.all().find(roles[tensor]);
      if (found == live.all().end()) return false;
      chosen = found->second;
    } else {
      const uint64_t size = known.plan().tensors[tensor].size;
      const bool any_size = known.index().moves_in_handover(static_cast<uint32_t>(tensor));
      const auto found = std::find_if(unused.begin(), unused.end(), [&](const LiveAllocation& one) {
        return one.size == size || (any_size && one.size < size);
      });
      if (found == unused.end()) return false;
      chosen = *found;
      unused.erase(found);
    }
    if (why_not(known, tensor, chosen, plans) != nullptr) return false;
    addresses_.push_back(chosen.address);
  }
  return true;
}

}  // namespace reprise::replay

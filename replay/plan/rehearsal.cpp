#include "replay/plan/rehearsal.h"

#include <algorithm>

#include "replay/plan/same_call.h"

namespace reprise::replay {

using plan::CallKind;

// Of what is there at the start nothing is known before a call names it.
bool Rehearsal::stands_for(uint32_t tensor, uint64_t allocation) noexcept {
  uint64_t& known = allocations_[tensor];
  if (known == kUnknown && tensor < plan_index_->persistent_count) known = allocation;
  return known == allocation;
}

bool Rehearsal::is_pointee(const plan::Call& call, uint64_t allocation) noexcept {
  const auto stands = [&](const plan::OpAccess& access, uint64_t for_it) {
    return access.parameter_offset == trace::kNoParameter && allocations_[access.tensor] == for_it;
  };
  const auto find = [&](uint64_t for_it) {
    return std::find_if(call.accesses.begin(), call.accesses.end(),
                        [&](const plan::OpAccess& access) { return stands(access, for_it); });
  };
  if (find(allocation) != call.accesses.end()) return true;
  const auto unknown = find(kUnknown);
  return unknown != call.accesses.end() && stands_for(unknown->tensor, allocation);
}

bool Rehearsal::op(const Command& command) noexcept {
  if (!cursor_.pass_frees() || is_over()) return false;
  const plan::Call& call = cursor_.expected();
  Match match;
  const bool same = is_same_call(
      call, command, managed_,
      [&](const plan::OpAccess& expected, const Access& access) {
        return stands_for(expected.tensor, access.allocation);
      },
      [&](const Access& access) { return is_pointee(call, access.allocation); }, !sizes_.empty());
  if (same) cursor_.consume(&match);
  return same;
}

bool Rehearsal::allocate(const AllocateCall& call) noexcept {
  if (!cursor_.pass_frees() || is_over()) return false;
  const plan::Call& expected = cursor_.expected();
  const bool any_size = !sizes_.empty();
  if (any_size ? !is_allocation(expected, call) : !is_same_allocation(plan_index_->plan, expected, call)) return false;
  if (any_size) sizes_[expected.tensor] = call.size;
  allocations_[expected.tensor] = call.allocation;
  Match match;
  cursor_.consume(&match);
  return true;
}

bool Rehearsal::free(const FreeCall& call) noexcept {
  Match match;
  // Sizes vary in all calls of a plan or in none.
  const plan::Plan& plan = plan_index_->plan;
  const bool any_size = !sizes_.empty() || has_any_size(plan.calls[0]);
  return cursor_.free(
      [&](uint32_t tensor) {
        return (any_size || plan.tensors[tensor].size == call.size) && stands_for(tensor, call.allocation);
      },
      &match);
}

}  // namespace reprise::replay

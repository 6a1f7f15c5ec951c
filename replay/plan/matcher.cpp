#include "replay/plan/matcher.h"

#include <algorithm>

#include "replay/plan/same_call.h"

namespace reprise::replay {

using plan::CallKind;

void Matcher::begin(const PlanIndex* plan_index, const std::vector<CUdeviceptr>& persistent, Zone managed,
                    uint64_t first) noexcept {
  plan_index_ = plan_index;
  managed_ = managed;
  addresses_.assign(plan_index->addresses.begin(), plan_index->addresses.end());
  std::copy(persistent.begin(), persistent.end(), addresses_.begin());
  sizes_.clear();
  for (const plan::Tensor& tensor : plan_index->plan.tensors) sizes_.push_back(tensor.size);
  cursor_.begin(plan_index, first);
}

bool Matcher::op(const Command& command, Match* match) noexcept {
  const bool may_come = cursor_.pass_frees();
  const plan::Call& call = cursor_.expected();
  const bool same =
      may_come && is_same_call(
                      call, command, managed_,
                      [&](const plan::OpAccess& expected, const Access& access) {
                        const bool fits = !has_any_size(call) || is_same_part(call, expected, access);
                        return address_of(expected.tensor) == access.address - access.offset && fits;
                      },
                      [&](const Access& access) { return has_pointee(call, access.address - access.offset); });
  if (same) {
    cursor_.consume(match);
  } else {
    cursor_.go_back();
  }
  return same;
}

// Where sizes vary, what is copied or set is all of the tensor from its offset on, or may be any part: the plan knows
// by it what is overwritten.
bool Matcher::is_same_part(const plan::Call& call, const plan::OpAccess& expected,
                           const Access& access) const noexcept {
  if (call.op == trace::OpKind::launch || plan::moves(expected)) return true;
  return access.size == 0 || access.offset + access.size == sizes_[expected.tensor];
}

// What a table in memory points to is known from the recording; under the plan nothing is read back, so the live call
// may know less of it, but nothing else.
bool Matcher::has_pointee(const plan::Call& call, CUdeviceptr base) const noexcept {
  return std::any_of(call.accesses.begin(), call.accesses.end(), [&](const plan::OpAccess& access) {
    return access.parameter_offset == trace::kNoParameter && address_of(access.tensor) == base;
  });
}

bool Matcher::knows_pointees(const Match& match) const noexcept {
  const plan::Call& call = plan_index_->plan.calls[match.call];
  const bool launch = call.op == trace::OpKind::launch || call.op == trace::OpKind::graph_launch;
  return launch && !call.accesses.empty() && call.accesses.back().parameter_offset == trace::kNoParameter;
}

void Matcher::add_pointees(const Match& match, std::vector<Access>* accesses, uint64_t* operand_bytes) const {
  const auto there = [&](CUdeviceptr base) {
    return std::any_of(accesses->begin(), accesses->end(),
                       [&](const Access& access) { return access.address - access.offset == base; });
  };
  for (const plan::OpAccess& known : plan_index_->plan.calls[match.call].accesses) {
    const CUdeviceptr base = address_of(known.tensor);
    if (known.parameter_offset != trace::kNoParameter || there(base)) continue;
    accesses->push_back(
        {{0, known.offset, 0, trace::kNoParameter, trace::kAccessRead | trace::kAccessWrite}, base + known.offset});
    *operand_bytes += plan_index_->plan.tensors[known.tensor].size;
  }
}

bool Matcher::allocate(const AllocateCall& call, Match* match, CUdeviceptr* address) noexcept {
  const bool may_come = cursor_.pass_frees();
  const plan::Call& expected = cursor_.expected();
  if (!may_come || !is_same_allocation(plan_index_->plan, expected, call)) {
    cursor_.go_back();
    return false;
  }
  if (plan_index_->moves_in_handover(expected.tensor)) {
    addresses_[expected.tensor] = plan_index_->addresses[expected.tensor];
  }
  *address = address_of(expected.tensor);
  sizes_[expected.tensor] = call.size;
  if (expected.kind == CallKind::allocate_handover) std::erase(handovers_, expected.tensor);
  cursor_.consume(match);
  return true;
}

bool Matcher::free(const FreeCall& call, Match* match) noexcept {
  if (!cursor_.free([&](uint32_t tensor) { return address_of(tensor) == call.address; }, match)) return false;
  const plan::Call& freed = plan_index_->plan.calls[match->call];
  if (hands_over(freed)) handovers_.push_back(freed.tensor);
  return true;
}

std::vector<OpenHandover> Matcher::end() noexcept {
  std::vector<OpenHandover> open;
  for (const uint32_t tensor : handovers_) open.push_back({addresses_[tensor], plan_index_->plan.tensors[tensor].size});
  handovers_.clear();
  return open;
}

std::string Matcher::expected() const {
  const plan::Call& call = expected_call();
  switch (call.kind) {
    case CallKind::allocate:
    case CallKind::allocate_handover:
      return "allocate " + std::to_string(plan_index_->plan.tensors[call.tensor].size);
    case CallKind::free:
    case CallKind::free_handover:
    case CallKind::late_free:
      return "free " + std::to_string(plan_index_->plan.tensors[call.tensor].size);
    case CallKind::op:
      break;
  }
  return call.name;
}

}  // namespace reprise::replay

#include "analyzer/plan/enforced.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "preload/base/readable.h"

namespace reprise::plan {
namespace {

// Where the plan is left, a chunk of the slab region moves by itself, with the small tensors that begin in it.
bool lies_over_a_chunk(const Plan& plan, const Tensor& tensor) {
  if (tensor.chunk_count != 0 || tensor.allocate_call == kNone || tensor.size == 0) return false;
  return tensor.slab_offset / plan.chunk_bytes != (tensor.slab_offset + tensor.size - 1) / plan.chunk_bytes;
}

// An op that strays between a launch and its recompute might change their operands, or use the dropped tensor.
bool recomputes_across_strays(const Plan& plan) {
  std::vector<uint32_t> strays_before = {0};
  for (const Call& call : plan.calls) strays_before.push_back(strays_before.back() + (may_stray(call) ? 1 : 0));
  for (size_t again = 0; again < plan.calls.size(); ++again) {
    const uint32_t first = plan.calls[again].recompute_of;
    if (first != kNone && strays_before[again] != strays_before[first]) return true;
  }
  return false;
}

}  // namespace

bool keeps_kernels_away(const Plan& plan, Safety safety) {
  return safety == Safety::strict || (is_by_kernel(safety) && !all_audited(plan));
}

std::string why_not_enforced(const Plan& plan, Safety safety) {
  if (device_count(plan) > 1) {
    return fmt::format("is for {} devices, which can be simulated but not enforced; make one for a single device",
                       device_count(plan));
  }
  if (reorders(plan)) return "reorders kernels, which can be simulated but not enforced; make one with reprise plan";
  if (has_split_tensors(plan)) {
    return "splits tensors, which can be simulated but not enforced; make one with reprise plan";
  }
  if (std::any_of(plan.tensors.begin(), plan.tensors.end(),
                  [&plan](const Tensor& tensor) { return lies_over_a_chunk(plan, tensor); })) {
    return "puts a small tensor over the end of a chunk, as plans of older versions do; make it anew with reprise plan";
  }
  if (!keeps_kernels_away(plan, safety)) return {};
  if (safety == Safety::strict ? recomputes(plan) : recomputes_across_strays(plan)) {
    return "drops what it recomputes, which --safety strict never does, nor proven and audited across a kernel that is "
           "neither; make one for that safety, or run with --safety trusted";
  }
  if (drops_what_is_only_read(plan)) {
    return "was made for --safety trusted; make one for the safety of this run, or run with --safety trusted";
  }
  return {};
}

std::string made_for_another(const Plan& plan, Safety safety) {
  if (plan.safety == safety) return {};
  return fmt::format(
      "was made for --safety {0} and is followed with {1}, so it takes another time than predicted; run it with "
      "--safety "
      "{0}, or make a plan for {1}",
      name_of(plan.safety), name_of(safety));
}

std::string made_for_less(const Plan& plan, uint64_t budget_bytes) {
  if (budget_bytes < plan.budget_bytes + plan.chunk_bytes) return {};
  return fmt::format("was made for a budget of {}, and its iterations use no more of the {} that they may; {}",
                     readable_bytes(plan.budget_bytes), readable_bytes(budget_bytes),
                     budget_bytes >= plan.peak_bytes
                         ? "these hold all that the program has, so without a plan nothing would have to move"
                         : "a plan for that may move less");
}

std::string why_no_plan_fits(const Plan& plan, uint64_t budget_bytes) {
  if (budget_bytes >= plan.minimum_bytes) return {};
  return fmt::format("no plan fits into {} bytes ({}): at least {} bytes ({}) are needed", budget_bytes,
                     readable_bytes(budget_bytes), plan.minimum_bytes, readable_bytes(plan.minimum_bytes));
}

}  // namespace reprise::plan

// Split tensors, allocations that stand as several tensors, their parts: nothing that the program does with one may get
// lost. The structure check sees that the parts tile their allocation; here it is checked that they live together, and
// that an op which works on one part through a mere pointer works on all.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "analyzer/verify/machine_walk.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

using plan::kNone;

class SplitTensorCheck {
 public:
  explicit SplitTensorCheck(const plan::Plan& plan)
      : plan_(plan), ops_before_(plan.calls.size(), 0), count_(plan.tensors.size()) {
    uint32_t ops = 0;
    for (uint32_t call = 0; call < plan.calls.size(); ++call) {
      ops_before_[call] = ops;
      if (plan.calls[call].kind == plan::CallKind::op) ++ops;
    }
    for (const plan::Tensor& tensor : plan.tensors) {
      if (tensor.part_of != kNone) ++count_[tensor.part_of];
    }
  }

  Status run() const {
    for (uint32_t tensor = 0; tensor < plan_.tensors.size(); ++tensor) {
      if (!lives_with_first(tensor)) {
        return refusal(fmt::format("an op runs while tensor {} is alive and tensor {}, another part of it, is not",
                                   tensor, plan_.tensors[tensor].part_of));
      }
      if (Status status = check_recomputed(tensor); !status.ok()) return status;
    }
    for (uint32_t call = 0; call < plan_.calls.size(); ++call) {
      if (Status status = check_accesses(call); !status.ok()) return status;
    }
    return {};
  }

 private:
  bool lives_with_first(uint32_t index) const {
    const plan::Tensor& tensor = plan_.tensors[index];
    if (tensor.part_of == kNone || tensor.allocate_call == kNone) return true;
    const plan::Tensor& first = plan_.tensors[tensor.part_of];
    return ops_before_[tensor.allocate_call] == ops_before_[first.allocate_call] &&
           ops_before_[tensor.free_call] == ops_before_[first.free_call];
  }

  // A recomputed tensor has the same parts as before.
  Status check_recomputed(uint32_t index) const {
    const plan::Tensor& tensor = plan_.tensors[index];
    if (tensor.recompute_of == kNone) return {};
    const plan::Tensor& before = plan_.tensors[tensor.recompute_of];
    const bool same = (tensor.part_of == kNone) == (before.part_of == kNone) &&
                      tensor.part_offset == before.part_offset &&
                      (tensor.part_of == kNone || (plan_.tensors[tensor.part_of].recompute_of == before.part_of &&
                                                   count_[tensor.part_of] == count_[before.part_of]));
    if (same) return {};
    return refusal(
        fmt::format("tensor {} is another part than tensor {}, which it recomputes", index, tensor.recompute_of));
  }

  // A pointer without a size may be followed to all parts.
  Status check_accesses(uint32_t call) const {
    const std::vector<plan::OpAccess>& accesses = plan_.calls[call].accesses;
    for (const plan::OpAccess& access : accesses) {
      const plan::Tensor& tensor = plan_.tensors[access.tensor];
      if (tensor.part_of == kNone || access.size != 0) continue;
      const auto same = [&](const plan::OpAccess& other) {
        return plan_.tensors[other.tensor].part_of == tensor.part_of && other.size == 0 && other.mode == access.mode &&
               other.parameter_offset == access.parameter_offset;
      };
      std::vector<uint32_t> reached;
      for (const plan::OpAccess& other : accesses) {
        if (same(other)) reached.push_back(other.tensor);
      }
      std::sort(reached.begin(), reached.end());
      reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
      if (reached.size() == count_[tensor.part_of]) continue;
      return refusal(fmt::format(
          "call {} ({}) may go anywhere behind a pointer, but has {} of the {} parts of tensor {}", call,
          trace::shown_name(plan_.calls[call].name), reached.size(), count_[tensor.part_of], tensor.part_of));
    }
    return {};
  }

  const plan::Plan& plan_;
  std::vector<uint32_t> ops_before_;  // by call
  std::vector<uint32_t> count_;       // by first part: of its parts
};

}  // namespace

Status check_split_tensors(const plan::Plan& plan) {
  return plan::has_split_tensors(plan) ? SplitTensorCheck(plan).run() : Status{};
}

}  // namespace reprise::analyzer

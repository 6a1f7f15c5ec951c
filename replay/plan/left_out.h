// A part of an iteration that the program leaves out this time: a micro-batch, an update, a line of the log. Its calls
// are made in the program's place, but nothing is launched for them: what is behind finds memory as the plan has it.
// Caller: CallCursor.
//
//     plan      allocate A | launch | free A | launch B
//     program                                  launch B        the first three are made, the launch without its kernel
#pragma once
#include <cstdint>
#include <vector>

#include "replay/plan/plan_index.h"

namespace reprise::replay {

class LeftOutPart {
 public:
  // Only plans that repeat no launch have such parts: what a launch would have made anew is not made.
  explicit LeftOutPart(const PlanIndex* index) noexcept
      : index_(*index), inside_(index->plan.tensors.size(), false), possible_(index->repeats.empty()) {}

  // The next call, no free of a tensor from before. False: it has to come.
  bool take(uint32_t call) noexcept;
  bool has(uint32_t tensor) const noexcept { return inside_[tensor]; }
  // What was allocated in it has been freed in it.
  bool is_whole() const noexcept { return alive_ == 0; }
  // Most of the iteration is left: what leaves out more is another loop, which does better without the plan's copies.
  bool is_small() const noexcept { return 2 * compute_ns_ <= index_.plan.compute_ns; }

 private:
  bool brings_in_from_before(const plan::Call& call) const noexcept;

  const PlanIndex& index_;
  std::vector<bool> inside_;  // by tensor: allocated in it, and alive
  uint64_t alive_ = 0;
  uint64_t compute_ns_ = 0;
  bool possible_;
};

}  // namespace reprise::replay

// Does the program go through a plan's iteration while that plan is not in force? Compares its calls with the plan's as
// the matcher does, but finds the tensors that are there at the start by their uses, not by their order: a loop may
// have got them back in another order. Caller: the plan follower, for each call that the plan does not rule.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "preload/calls/command.h"
#include "replay/plan/call_cursor.h"

namespace reprise::replay {

class Rehearsal {
 public:
  // The next call may be the plan's first. Pointers outside `managed` are not compared.
  Rehearsal(const PlanIndex* plan_index, Zone managed) noexcept
      : plan_index_(plan_index), managed_(managed), allocations_(plan_index->plan.tensors.size(), kUnknown) {
    cursor_.begin(plan_index, 0);
  }
  // Sizes do not count. Goes on where the matcher is, whose plan the program leaves; `allocations`: by tensor of the
  // plan, what stands for it now, or kUnknown.
  Rehearsal(const PlanIndex* plan_index, Zone managed, const CallCursor& at, std::vector<uint64_t> allocations) noexcept
      : plan_index_(plan_index),
        managed_(managed),
        allocations_(std::move(allocations)),
        cursor_(at),
        end_(at.iteration() + 1),
        sizes_(plan_index->plan.tensors.size(), 0) {}

  // Is it the expected call? Then the next one is expected from here on; else the rehearsal is over.
  bool op(const Command& command) noexcept;
  bool allocate(const AllocateCall& call) noexcept;
  bool free(const FreeCall& call) noexcept;

  // That was the last call of the iteration.
  bool finished() const noexcept { return is_over() && !cursor_.any_passed(); }
  // ... but for frees that may come later.
  bool is_over() const noexcept { return cursor_.iteration() == end_; }
  // By tensor of the plan: the allocation that stands for it where the next iteration begins. kUnknown: no call named
  // it.
  static constexpr uint64_t kUnknown = 0;  // allocations count from 1
  const std::vector<uint64_t>& allocations() const noexcept { return allocations_; }
  // Where sizes do not count: those that were allocated, by tensor; else 0.
  const std::vector<uint64_t>& sizes() const noexcept { return sizes_; }

 private:
  bool stands_for(uint32_t tensor, uint64_t allocation) noexcept;
  bool is_pointee(const plan::Call& call, uint64_t allocation) noexcept;

  const PlanIndex* plan_index_;
  Zone managed_;
  std::vector<uint64_t> allocations_;
  CallCursor cursor_;
  uint64_t end_ = 1;             // iteration that the next one is
  std::vector<uint64_t> sizes_;  // empty: sizes count
};

}  // namespace reprise::replay

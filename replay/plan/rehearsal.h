// Does the program go through a plan's iteration while that plan is not in force? Compares its calls with the plan's as
// the matcher does, but finds the tensors that are there at the start by their uses, not by their order: a loop may
// have got them back in another order. Caller: the plan follower, for each call that the plan does not rule.
#pragma once
#include <cstdint>
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

  // Is it the expected call? Then the next one is expected from here on; else the rehearsal is over.
  bool op(const Command& command) noexcept;
  bool allocate(const AllocateCall& call) noexcept;
  bool free(const FreeCall& call) noexcept;

  // That was the last call of the iteration.
  bool finished() const noexcept { return cursor_.iteration() == 1 && !cursor_.any_passed(); }
  // By tensor of the plan: the allocation that stands for it where the next iteration begins. kUnknown: no call named
  // it.
  static constexpr uint64_t kUnknown = 0;  // allocations count from 1
  const std::vector<uint64_t>& allocations() const noexcept { return allocations_; }

 private:
  bool stands_for(uint32_t tensor, uint64_t allocation) noexcept;
  bool is_pointee(const plan::Call& call, uint64_t allocation) noexcept;

  const PlanIndex* plan_index_;
  Zone managed_;
  std::vector<uint64_t> allocations_;
  CallCursor cursor_;
};

}  // namespace reprise::replay

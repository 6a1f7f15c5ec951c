// Are the plans those of the program's iterations, or of parts of them? Plans that are left every few iterations are
// parts: micro-steps of a step, the batches between two evaluations. Then no plan is followed for a while, so that the
// whole is recorded in one piece. A round is what happens from one activation to the next. Caller: the plan follower.
#pragma once
#include <cstdint>

namespace reprise::replay {

class Rounds {
 public:
  void plan_added() noexcept;
  void activated(uint32_t plan) noexcept;
  // The plan that was activated last ruled no iteration, so it is no part of what repeats.
  void activated_in_vain() noexcept;
  void ruled(uint64_t iterations) noexcept { planned_iterations_ += iterations; }
  void called() noexcept { ++calls_; }

  // Asked where a plan would begin. true: from here on none does for a while.
  bool hold_now() noexcept;
  // For one call. true: no plan may begin at it.
  bool holds_call() noexcept;
  void end_hold() noexcept { held_calls_ = shortest_period_ = 0; }
  bool holding() const noexcept { return held_calls_ > 0; }
  // Calls of a repetition that is worth a question; shorter ones have plans.
  uint64_t shortest_period() const noexcept { return shortest_period_; }

 private:
  void start_over() noexcept;

  uint64_t activations_ = 0;  // since the last hold
  uint64_t planned_iterations_ = 0;
  uint64_t calls_ = 0;   // meanwhile, planned and on demand
  uint64_t in_use_ = 0;  // a bit for each plan
  uint64_t holds_ = 0;
  uint64_t held_calls_ = 0;
  uint64_t shortest_period_ = 0;
};

}  // namespace reprise::replay

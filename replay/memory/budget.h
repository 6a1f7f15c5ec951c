// How much device memory there may be right now. A fixed budget is one number less what the program holds around us; a
// percentage of the program's own peak rises with what is known of that peak (footprint.h, and what it holds around
// us). Callers: the dispatcher, the enforcer.
#pragma once
#include <cstdint>

namespace reprise::replay {

struct BudgetRule {
  uint64_t bytes = 0;     // fixed budget; 0: percentage
  double fraction = 0.0;  // of the peak that the program would have without us
};

// The rule, pure: how many chunks may exist. `outside_bytes` is device memory that is not ours to manage;
// `peak_bytes` is the footprint's so far, `largest_working_set` (chunks) what one call so far could not do without: a
// percentage is never less (decision 0001).
// A percentage that follows a growing peak stays below the final limit whenever that is feasible at all: both terms do.
uint64_t chunk_limit(const BudgetRule& rule, uint64_t chunk_bytes, uint64_t outside_bytes, uint64_t peak_bytes,
                     uint64_t largest_working_set) noexcept;

// The budget in bytes as it is known now, for the planner and for messages.
uint64_t known_budget(const BudgetRule& rule, uint64_t peak_bytes, uint64_t outside_bytes) noexcept;

// Watches device memory that the program creates around Reprise: module images, pools, other allocations.
class Outside {
 public:
  // Takes what is free now as the starting point. A context must be current.
  void open() noexcept;
  // Asks the driver; `ours` are the bytes that Reprise has created since open().
  uint64_t measure(uint64_t ours) noexcept;
  uint64_t bytes() const noexcept { return bytes_; }

 private:
  uint64_t free_at_start_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace reprise::replay

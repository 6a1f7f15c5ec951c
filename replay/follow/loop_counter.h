// Counts how often the program goes through the loop that a plan is of while no plan rules it: the plan's calls, one
// after another, with the same number of allocations and bytes alive. Caller: the plan follower, for each call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/plan/plan_index.h"

namespace reprise::replay {

// What a call is, and what is alive before it: the same in all iterations of a loop.
uint64_t call_word(uint64_t signature, uint64_t live_count, uint64_t live_bytes) noexcept;

// Those of the program's calls in one iteration of the plan.
std::vector<uint64_t> words_of(const PlanIndex& index) noexcept;

class LoopCounter {
 public:
  explicit LoopCounter(std::vector<uint64_t> words) noexcept;

  void add(uint64_t word) noexcept;
  // A plan was left at this call of its iteration, or has ended behind a whole one: 0.
  void left_plan_at(uint32_t plan_call, const PlanIndex& index) noexcept;
  // What comes is not the rest of an iteration.
  void start_over() noexcept { over_ = 0; }

  uint64_t finished() const noexcept { return finished_; }
  // More than half over when the program did something else, as the last iteration of a loop often is.
  uint64_t unfinished() const noexcept { return unfinished_; }
  const std::vector<uint64_t>& words() const noexcept { return words_; }

 private:
  std::vector<uint64_t> words_;
  std::vector<uint32_t> shorter_;  // by calls that are over: as how many of another iteration's they count
  uint32_t over_ = 0;              // calls of the iteration that the program may be in
  uint64_t finished_ = 0;
  uint64_t unfinished_ = 0;
};

}  // namespace reprise::replay

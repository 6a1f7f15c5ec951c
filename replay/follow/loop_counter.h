// Counts how often the program goes through the loop that a plan is of while no plan rules it: the plan's calls, one
// after another, with the same number of allocations and bytes alive. Caller: the plan follower, for each call.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "replay/plan/plan_index.h"

namespace reprise::replay {

// A call of the program as loops are told by.
struct LoopWord {
  uint64_t exact = 0;     // what it is, and what is alive before it: the same in all iterations of a loop
  uint64_t any_size = 0;  // ... of a loop whose sizes vary
};
LoopWord word_of(uint64_t signature, uint64_t structure, uint64_t live_count, uint64_t live_bytes) noexcept;

// Those of the program's calls in one iteration of the plan, of the kind that it is told by.
std::vector<uint64_t> words_of(const PlanIndex& index) noexcept;

class LoopCounter {
 public:
  explicit LoopCounter(std::vector<uint64_t> words, bool sizes_vary = false) noexcept;

  void add(const LoopWord& call) noexcept { add(sizes_vary_ ? call.any_size : call.exact); }
  void add(uint64_t word) noexcept;
  // A plan was left at this call of its iteration, or has ended behind a whole one: 0.
  void left_plan_at(uint32_t plan_call, const PlanIndex& index) noexcept;
  // What comes is not the rest of an iteration.
  void start_over() noexcept { over_ = 0; }

  uint64_t finished() const noexcept { return finished_; }
  // More than half over when the program did something else, as the last iteration of a loop often is.
  uint64_t unfinished() const noexcept { return unfinished_; }
  const std::vector<uint64_t>& words() const noexcept { return words_; }
  bool sizes_vary() const noexcept { return sizes_vary_; }

 private:
  std::vector<uint64_t> words_;
  bool sizes_vary_;
  std::vector<uint32_t> shorter_;  // by calls that are over: as how many of another iteration's they count
  uint32_t over_ = 0;              // calls of the iteration that the program may be in
  uint64_t finished_ = 0;
  uint64_t unfinished_ = 0;
};

}  // namespace reprise::replay

// Does the program repeat itself, and how many iterations are over that no plan ruled? Counts apart from the matching
// of calls with plans: by the period that the detector has found while there is no plan, by the loops of plans then.
// Numbers iterations and writes those on demand to the run log. Caller: the plan follower, under the submission lock.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/follow/detector.h"
#include "replay/follow/loop_counter.h"
#include "replay/follow/recent_calls.h"
#include "replay/issue/shared.h"

namespace reprise::replay {

// What is known of iterations when a context ends, and with it all plans.
struct CountedLoops {
  std::vector<LoopCounter> loops;
  uint64_t next_iteration = 0;  // its number
};

class Repetition {
 public:
  Repetition(Shared* shared, CountedLoops before) noexcept
      : shared_(*shared), loops_(std::move(before.loops)), next_iteration_(before.next_iteration) {}

  // Whether to look for repetition, and to count the iterations of the one that is found.
  void watch(bool on) noexcept { watching_ = counts_ = on; }
  // ... for another loop than the one that is counted as it was.
  void watch_for_others() noexcept;
  bool watching() const noexcept { return watching_; }
  Detector& detector() noexcept { return detector_; }
  const Detector& detector() const noexcept { return detector_; }

  // The counter for the loop of this plan, made where there is none: what of it is over is in the detector's words.
  uint32_t counter_of(const PlanIndex& index) noexcept;
  CountedLoops take() noexcept;

  // A call that no plan rules. true: the last two periods were equal for the first time at this distance; or, where
  // there is no plan, so many that differ in sizes and in the order of frees alone (`structure`: of the call; 0: a
  // free).
  bool add(const LoopWord& call, uint64_t structure) noexcept;
  // The detector that sees what add() has just said.
  const Detector& repeating() const noexcept { return repeats_loosely_ ? loose_ : detector_; }
  // Records that there is a plan. A plan kept from an earlier run counts only once it is in force.
  void plan_is_known() noexcept { has_plans_ = true; }
  bool has_plans() const noexcept { return has_plans_; }
  // A plan's iteration begins: what is mostly over on demand counts.
  void plan_begins() noexcept;
  // It came in force, or has begun an iteration at least.
  void plan_in_force() noexcept;
  // ... was left before the `call`-th of its calls, counted by `loop`.
  void plan_ends(uint32_t loop, uint32_t call, const PlanIndex& index) noexcept;
  // What follows is no rest of an iteration on demand; `calls` of one are over if the plan has ruled none.
  void left_plan(uint64_t calls) noexcept;
  void left_planned_iterations() noexcept;

  uint64_t next_iteration() const noexcept { return next_iteration_; }
  void planned_iteration(uint64_t iteration) noexcept {
    if (iteration >= next_iteration_) next_iteration_ = iteration + 1;
  }

 private:
  bool detect(uint64_t word) noexcept;
  bool detect_loosely(uint64_t structure) noexcept;
  void begin_to_count() noexcept;
  void boundary() noexcept;
  void tell() noexcept;

  Shared& shared_;
  Detector detector_;
  Detector loose_{1u << 17};  // of all calls but frees, by their structure and that of the last ones before them
  RecentCalls recent_;
  uint64_t loose_wanted_ = 0;  // so many equal periods are worth a question
  bool repeats_loosely_ = false;
  std::vector<LoopCounter> loops_;
  uint64_t next_iteration_ = 0;  // number of the next iteration that begins, by a plan or on demand
  bool watching_ = false;
  bool has_plans_ = false;
  bool counts_ = false;     // the iterations of a loop that repeats instead of the one before
  uint64_t period_ = 0;     // of the repetition that was found, to tell iterations on demand apart
  uint64_t in_period_ = 0;  // calls
  uint64_t began_ns_ = 0;   // the iteration on demand; 0: its beginning was not seen
};

}  // namespace reprise::replay

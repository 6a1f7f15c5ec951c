// Device times of one planned iteration at a time, for the run log: its driver calls are bracketed for the source of
// activity, and what that says is written when they are surely complete. Caller: the stopwatch.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/issue/shared.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

class IterationSample {
 public:
  void open(Shared* shared, const PlanIndex* plan_index, uint32_t plan) noexcept;
  // The `planned`-th iteration that a plan rules is about to begin: is it one to be looked at closely?
  void look_at(uint64_t iteration, uint64_t planned) noexcept;
  // An iteration has begun.
  void begun() noexcept;
  // The plan has ended, in the middle of `iteration` unless that was `whole`.
  void end(uint64_t iteration, bool whole) noexcept;

  // The id by which the source knows the vertex of the iteration. 0: that is not sampled.
  uint64_t id_of(uint64_t iteration, uint32_t vertex) const noexcept {
    return pending_ && iteration == iteration_ ? kPlanBit | (iteration & kIterationBits) << 32 | vertex : 0;
  }

 private:
  static constexpr uint64_t kPlanBit = uint64_t{1} << 63;
  static constexpr uint64_t kIterationBits = 0x7fffff;
  struct SampledInterval {
    uint64_t iteration;
    uint32_t vertex;
    uint64_t start_ns;
    uint64_t end_ns;
  };
  static void keep(void* self, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept;
  void report() noexcept;

  Shared* shared_ = nullptr;
  const PlanIndex* plan_index_ = nullptr;
  uint32_t plan_ = 0;  // its number
  bool pending_ = false;
  uint64_t iteration_ = 0;
  uint64_t age_ = 0;     // iterations that have begun since
  bool missed_ = false;  // the last one that was to be sampled was not whole: the next one is
  std::vector<SampledInterval> intervals_;
};

// Length of the union of intervals, and of the intersection of two unions. Exposed for tests.
using Spans = std::vector<std::pair<uint64_t, uint64_t>>;
uint64_t busy_ns(Spans spans);
uint64_t both_busy_ns(const Spans& first, const Spans& second);

}  // namespace reprise::replay

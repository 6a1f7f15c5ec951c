// The time of an iteration cut at points: the start and the end of the fullest op of each segment. Interval i leads up
// to point i. Even points are starts, with a stall before them; odd ones are ends, and the interval before is the op
// itself. Points of the next iteration go on counting. Called by fluid.cpp and what it is made of.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzer/bounds/periods.h"

namespace reprise::analyzer {

// The units of the linear program: well scaled numbers.
inline constexpr double kGiB = 0x1p30;
inline constexpr double kMs = 1e6;  // nanoseconds

// A period on this grid: at which points the tensor is not in use, and up to which interval it may come back.
struct PeriodSpan {
  uint32_t period = 0;
  uint32_t first = 0;  // covered points, inclusive
  uint32_t last = 0;
  uint32_t back = 0;  // kNone: it need not come back
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a defaulted <=> for a pointer
  auto operator<=>(const PeriodSpan&) const = default;
};

class FluidGrid {
 public:
  // `segments`: at most. `graph` and `vitality` must outlive it.
  FluidGrid(const TaskGraph& graph, const Vitality& vitality, uint32_t segments);

  uint32_t ops() const { return ops_; }
  uint32_t points() const { return static_cast<uint32_t>(compute_ms_.size()); }
  // The op with the most bytes alive stands for its segment.
  const std::vector<OpIndex>& fullest() const { return fullest_; }
  // How long the ops of an interval take.
  double compute_ms(uint32_t interval) const { return compute_ms_[interval]; }

  // The interval in which an op runs.
  uint32_t interval_of(OpIndex op) const;
  // The first interval behind an op's end, and the last one before an op's start.
  uint32_t interval_behind(OpIndex op) const { return interval_of(op) + interval_of(op) % 2; }
  uint32_t interval_before(OpIndex op) const { return interval_of(op) - interval_of(op) % 2; }
  // nullopt: no point lies within the period.
  std::optional<PeriodSpan> span_of(const Period& period, uint32_t index) const;

 private:
  const plan::Call& call_of(OpIndex op) const { return graph_.calls[vitality_.call_of_op[op]].call; }
  double duration_ms(OpIndex op) const;
  double touched(OpIndex op) const;
  void cut(uint32_t segments);

  const TaskGraph& graph_;
  const Vitality& vitality_;
  const uint32_t ops_;
  std::vector<OpIndex> fullest_;    // by segment
  std::vector<double> compute_ms_;  // by interval
};

}  // namespace reprise::analyzer

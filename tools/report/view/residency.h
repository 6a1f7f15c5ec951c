// Where each tensor is during one planned iteration, and how much memory that adds up to. Called by the report and the
// exports; the prediction is the plan's own.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/plan/plan.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {

struct Move {
  bool offload = false;  // else a reload
  Interval time;
};

struct TensorView {
  uint32_t tensor = 0;
  Interval life;                   // from allocation to free; the whole iteration for persistent ones
  std::vector<Interval> uses;      // by ops, sorted by start
  std::vector<Interval> resident;  // on the device
  std::vector<Move> moves;         // sorted by start
};

// One view per tensor, index as in plan.tensors. Times are those of the predicted timeline.
std::vector<TensorView> planned_views(const plan::Plan& plan);

// Bytes on the device over the predicted iteration: what is reserved, and each resident tensor's chunks.
Curve planned_memory(const plan::Plan& plan, const std::vector<TensorView>& views);
// Live bytes over the recorded iteration without Reprise: ops one after the other with their recorded durations.
Curve unmanaged_memory(const plan::Plan& plan);
// Live bytes over a whole trace, by the time of the calls, from its first allocation; host memory does not count.
Curve recorded_memory(const trace::Trace& trace);
// The same by the clock of the calls.
Curve recorded_memory_by_clock(const trace::Trace& trace);

// When calls were not recorded, because a plan was followed: by the clock of the calls, from the last call before to
// the first one behind.
std::vector<Interval> recorded_pauses(const trace::Trace& trace);

uint64_t highest(const Curve& curve);
// At most about `count` points that keep every peak: within a bucket the highest value is what is kept.
Curve thinned(const Curve& curve, size_t count);

}  // namespace reprise::report

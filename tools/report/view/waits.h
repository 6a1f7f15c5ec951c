// What computing waited for: each gap of a timeline with what ended it, and their sums by cause. Called by the report.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {

// A gap of the compute engine before an op, or a part of one, and what ended it.
struct Wait {
  Interval time;
  std::string op;                        // that could not start
  std::string reason;                    // what it waited for
  bool transfer = false;                 // that was a copy
  uint32_t tensor = plan::kNone;         // whose copy
  std::optional<plan::EdgeKind> edge{};  // why the plan lets it wait; none: it was launched late
};

// All of them, in order of time.
std::vector<Wait> waits_of(const plan::Plan& plan, const Timeline& timeline);
// Those of at least `shortest_ns`, longest first, at most `count`.
std::vector<Wait> longest_waits(const plan::Plan& plan, const Timeline& timeline, uint64_t shortest_ns, size_t count);

struct WaitSum {
  std::string what;
  uint64_t ns = 0;
  uint64_t count = 0;
  uint32_t tensor = plan::kNone;
  std::optional<plan::EdgeKind> edge = {};  // of a sum by what the plan decided
};
// The same time three times over: by the transfer that ended a wait, by the tensor that it moved, and by what the plan
// decided. Each list is sorted, most time first.
struct WaitSums {
  uint64_t total_ns = 0;
  uint64_t transfer_ns = 0;      // that a copy ended
  uint64_t moving_ns = 0;        // that ended with what the plan moves
  uint64_t before_first_ns = 0;  // that the run log counts besides, for the iteration's first work
  std::vector<WaitSum> by_transfer;
  std::vector<WaitSum> by_tensor;  // those that a copy ended
  std::vector<WaitSum> by_decision;
};
// `stall_ns`: what the run log counts of a measured iteration tells by whom ops came late.
WaitSums sum_waits(const plan::Plan& plan, const Timeline& timeline, std::optional<uint64_t> stall_ns = {});

// An iteration's time taken apart: the parts add up to the whole.
struct TimeParts {
  uint64_t iteration = 0;  // of the run; 0 of what is predicted, too
  uint64_t whole_ns = 0;
  uint64_t kernels_ns = 0;     // in which the device computes, on however many streams
  std::vector<WaitSum> waits;  // what computing waited for, by what the plan decided and what the run log counts
  uint64_t moving_ns = 0;      // of these waits, for what the plan moves
  uint64_t rest_ns = 0;        // in which it did not compute, and waited for nothing that is known
};
TimeParts predicted_parts(const plan::Plan& plan);
// Of the iteration whose device times were measured; none: there is no such one.
std::optional<TimeParts> measured_parts(const plan::Plan& plan, const RunLog& log);

}  // namespace reprise::report

// What other budgets would cost: the same iteration planned for a few of them by one quick policy, within a time limit.
// Called when a report's inputs are examined.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/planner/planner.h"

namespace reprise::report {

struct BudgetPoint {
  uint64_t budget_bytes = 0;
  uint64_t time_ns = 0;  // of an iteration, predicted
  uint64_t moved_bytes = 0;
};

struct BudgetCurve {
  std::string policy;  // that planned it; empty: there is no curve
  // By budget, each as good as those below it; the first is the smallest that has a plan, the last the peak, and those
  // in between are whole chunks larger than the first.
  std::vector<BudgetPoint> points;
  uint64_t compute_ns = 0;  // of an iteration, computing alone
  uint64_t minimum_bytes = 0;
  uint64_t peak_bytes = 0;  // of the device without Reprise: from there on nothing has to move
  // The smallest planned budget at which an iteration is as fast (as_fast.h) as computing alone; 0: none was found.
  uint64_t full_speed_bytes = 0;
};

// `limit_ms`: when no further budget is begun. `own`: a plan of this workload that there is, with its kernel times; it
// counts like those that are made here, which may be worse.
BudgetCurve budget_curve(const analyzer::Workload& workload, plan::Safety safety, uint64_t limit_ms,
                         const plan::Plan* own = nullptr);

// Of an iteration within this budget: by the plan for the largest point that it holds. 0: there is none.
uint64_t time_at(const BudgetCurve& curve, uint64_t budget);

}  // namespace reprise::report

// The same program otherwise: with updates early, with ops launched again, with both. Graphs like any other, which the
// planner plans, too. Called by the planner.
#pragma once
#include <cstdint>
#include <deque>

#include "analyzer/planner.h"

namespace reprise::analyzer {

// What a variant needs more memory for than there is, or does not change, is left out.
class Variants {
 public:
  Variants(const Workload& workload, uint64_t budget, const PlanOptions& options);

  const std::deque<Workload>& all() const { return made_; }

 private:
  void add_early(const TaskGraph& graph);
  void add(TaskGraph graph);

  const Workload& workload_;
  uint64_t budget_;
  const PlanOptions& options_;
  std::deque<Workload> made_;
};

}  // namespace reprise::analyzer

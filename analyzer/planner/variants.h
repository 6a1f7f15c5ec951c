// The same program rewritten: with updates reordered, with ops recomputed, with both, with large tensors split. Graphs
// like any other, which the planner plans, too. Called by the planner.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>

#include "analyzer/planner/planner.h"

namespace reprise::analyzer {

// A variant that needs more memory than there is, or that changes nothing, is left out.
class Variants {
 public:
  Variants(const Workload& workload, uint64_t budget, const PlanOptions& options);

  const std::deque<Workload>& all() const { return made_; }

  // One of them, or the workload, with large tensors split; nullopt: not wished, or nothing is large.
  std::optional<Workload> split(const Workload& variant) const;

 private:
  void add_reordered(const TaskGraph& graph);
  void add(TaskGraph graph);
  std::optional<Workload> made_of(TaskGraph graph) const;

  const Workload& workload_;
  uint64_t budget_;
  const PlanOptions& options_;
  bool tried_ = false;  // for the policies that choose among variants, on one device
  std::deque<Workload> made_;
};

}  // namespace reprise::analyzer

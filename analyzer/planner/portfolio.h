// Tries policies, effective budgets and placements on one workload and keeps the fastest plan, by simulation, whatever
// the number of processors. Called by the planner.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/planner/candidate.h"
#include "analyzer/planner/planner.h"
#include "analyzer/planner/tried.h"

namespace reprise::analyzer {

class Portfolio {
 public:
  // `chunks` that the plan may use.
  Portfolio(const Workload& workload, uint64_t chunks)
      : workload_(workload), chunks_(chunks), tried_(workload, chunks) {}

  // With many policies, those that look best when mapping costs nothing come first, and the graph's size limits how
  // many candidates are tried: at least one that has a place for everything. A very large graph gets the first form
  // that has room for everything; in a small one, a local search starts from what the policies found. `searches`: may
  // the local search run? Not for the plan in place of a refused one, which must not rest on retiming.
  void run(const std::vector<const Policy*>& policies, bool searches = true);

  // What the first policy plans, in the first form that has room for everything, with homes for all or nearly all;
  // where it has none, what the next one does.
  void run_in_haste(const std::vector<const Policy*>& policies);

  // Homes by trial for the best plan (home_search.h); not for large graphs, nor where stays were placed one by one.
  void improve_homes();

  // What one policy finds when it is asked for alone. What was tried before is known and not tried again.
  void add_alone(const Policy& policy);

  // The best of another budget's plans competes, too.
  void add_best_of(Portfolio&& other);

  bool is_ideal() const;       // no copy keeps an op of the best plan waiting
  bool moves_nothing() const;  // the best plan is the program as it is
  const PlanCandidate* best() const { return best_ ? &*best_ : nullptr; }
  PlanCandidate take_best() { return std::move(*best_); }  // there must be one
  uint32_t count() const { return count_; }
  bool tiers_fit() const { return tiers_fit_; }

 private:
  void search();
  bool search(uint64_t capacity);
  bool try_orders(Recipe& recipe, const Scheduled& scheduled);  // of homes, each; true: one of them has room for all
  void place_by_prediction();
  void place_by_prediction(std::optional<PlanCandidate>& one);
  void add(const Policy& policy);
  void add_homes(const Policy& policy);
  void add_remaps(const Policy& policy);
  std::vector<const Policy*> by_promise(const std::vector<const Policy*>& policies);
  bool try_recipe(const Recipe& recipe);
  bool try_recipe(const Recipe& recipe, const Scheduled& scheduled);
  void keep(std::optional<PlanCandidate> candidate);
  bool spent() const { return tried_here_ >= most_ && found_here_; }

  const Workload& workload_;
  uint64_t chunks_;
  uint32_t most_ = 1;  // candidates
  std::optional<PlanCandidate> best_;
  std::optional<PlanCandidate> homes_;  // the best one with homes for all, where the best one has not
  uint32_t count_ = 0;
  // Since the policies that share an effort began.
  uint32_t tried_here_ = 0;
  bool found_here_ = false;
  Tried tried_;
  bool tiers_fit_ = true;
};

}  // namespace reprise::analyzer

#include "tools/report/curve/budget_curve.h"

#include <algorithm>
#include <chrono>

#include "tools/report/curve/as_fast.h"

namespace reprise::report {
namespace {

constexpr uint32_t kFewOps = 600;  // up to here the good policy is quick, too
constexpr int kSteps = 8;          // between the smallest budget and the peak

class Curve {
 public:
  Curve(const analyzer::Workload& workload, plan::Safety safety, uint64_t limit_ms)
      : workload_(workload), end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms)) {
    options_.policy = workload.graph.op_count <= kFewOps ? "reprise" : "disco";
    options_.safety = safety;
    options_.recompute = false;
    curve_.policy = options_.policy;
    curve_.compute_ns = workload.alone_ns;
    curve_.minimum_bytes = analyzer::least_budget(workload);
    curve_.peak_bytes = workload.peak_bytes;
  }

  // What is known already of a budget.
  void add(const plan::Plan& plan) {
    if (plan.budget_bytes < curve_.minimum_bytes || plan.budget_bytes >= curve_.peak_bytes) return;
    add({budget_of(chunks_above(plan.budget_bytes)), plan.predicted_ns, plan.offload_bytes + plan.reload_bytes});
  }

  BudgetCurve make() {
    const uint64_t low = curve_.minimum_bytes;
    const uint64_t high = std::max(curve_.peak_bytes, low);
    if (!plan(high) || low >= high || !plan(low)) return finish();  // there may be nothing to choose from
    // The middle first: where the time is over, what there is spans the whole.
    for (const int step : {4, 2, 6, 1, 3, 5, 7}) {
      const uint64_t budget = low + (high - low) / kSteps * static_cast<uint64_t>(step);
      if (!plan(budget_of(chunks_above(budget)))) return finish();
    }
    while (const uint64_t between = between_slow_and_fast()) {
      if (!plan(between)) break;
    }
    return finish();
  }

 private:
  // Plans are for whole chunks: what a budget has beyond the last one is of no use.
  uint64_t chunks_above(uint64_t budget) const { return (budget - curve_.minimum_bytes) / workload_.graph.chunk_bytes; }
  uint64_t budget_of(uint64_t chunks) const { return curve_.minimum_bytes + chunks * workload_.graph.chunk_bytes; }

  void add(const BudgetPoint& point) {
    const auto at =
        std::lower_bound(curve_.points.begin(), curve_.points.end(), point,
                         [](const BudgetPoint& a, const BudgetPoint& b) { return a.budget_bytes < b.budget_bytes; });
    if (at == curve_.points.end() || at->budget_bytes != point.budget_bytes) {
      curve_.points.insert(at, point);
    } else if (point.time_ns < at->time_ns) {
      *at = point;
    }
  }

  bool plan(uint64_t budget) {
    if (std::find(planned_.begin(), planned_.end(), budget) != planned_.end()) return true;
    if (std::chrono::steady_clock::now() > end_) return false;
    options_.budget_bytes = analyzer::budget_as_run(workload_, budget);
    const Result<plan::Plan> plan = analyzer::make_plan(workload_, options_);
    if (!plan.ok()) return false;
    add({budget, plan.value().predicted_ns, plan.value().offload_bytes + plan.value().reload_bytes});
    planned_.push_back(budget);
    return true;
  }

  // The smallest that is fast: its plan will do for all larger ones, whatever the policy makes of those.
  const BudgetPoint* full_speed() const {
    for (const BudgetPoint& one : curve_.points) {
      if (is_as_fast(one.time_ns, curve_.compute_ns)) return &one;
    }
    return nullptr;
  }

  // The middle of the chunks in between; 0: there are none.
  uint64_t between_slow_and_fast() const {
    const BudgetPoint* const fast = full_speed();
    if (fast == nullptr || fast == curve_.points.data()) return 0;
    const uint64_t slow = chunks_above((fast - 1)->budget_bytes);
    const uint64_t chunks = chunks_above(fast->budget_bytes);
    const uint64_t enough =
        chunks + (budget_of(chunks) < fast->budget_bytes ? 1 : 0);  // the peak may have a part of one
    return enough - slow > 1 ? budget_of(slow + (enough - slow) / 2) : 0;
  }

  BudgetCurve finish() {
    if (const BudgetPoint* const fast = full_speed()) curve_.full_speed_bytes = fast->budget_bytes;
    // A plan for fewer chunks can be followed within a larger budget.
    const BudgetPoint* best = curve_.points.data();
    for (BudgetPoint& one : curve_.points) {
      if (best->time_ns < one.time_ns) one = {one.budget_bytes, best->time_ns, best->moved_bytes};
      best = &one;
    }
    if (curve_.points.size() < 2) curve_.policy.clear();
    return std::move(curve_);
  }

  const analyzer::Workload& workload_;
  const std::chrono::steady_clock::time_point end_;
  analyzer::PlanOptions options_;
  BudgetCurve curve_;
  std::vector<uint64_t> planned_;  // budgets
};

}  // namespace

BudgetCurve budget_curve(const analyzer::Workload& workload, plan::Safety safety, uint64_t limit_ms,
                         const plan::Plan* own) {
  Curve curve(workload, safety, limit_ms);
  if (own != nullptr) curve.add(*own);
  return curve.make();
}

uint64_t time_at(const BudgetCurve& curve, uint64_t budget) {
  uint64_t time = 0;
  for (const BudgetPoint& one : curve.points) {
    if (one.budget_bytes <= budget) time = one.time_ns;
  }
  return time;
}

}  // namespace reprise::report

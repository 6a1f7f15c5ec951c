#include "tools/report/curve/budget_curve.h"

#include <algorithm>
#include <chrono>

namespace reprise::report {
namespace {

constexpr uint32_t kFewOps = 600;  // up to here the good policy is quick, too
constexpr int kSteps = 8;          // between the smallest budget and the peak
constexpr int kHalvings = 4;       // to find the budget for full speed more closely

class Curve {
 public:
  Curve(const analyzer::Workload& workload, plan::Safety safety, uint64_t limit_ms)
      : workload_(workload), end_(std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms)) {
    options_.policy = workload.graph.op_count <= kFewOps ? "reprise" : "disco";
    options_.safety = safety;
    options_.recompute = false;
    curve_.policy = options_.policy;
    curve_.compute_ns = workload.graph.compute_ns;
    curve_.minimum_bytes = analyzer::least_budget(workload);
    curve_.peak_bytes = workload.peak_bytes;
  }

  BudgetCurve make() {
    const uint64_t low = curve_.minimum_bytes;
    const uint64_t high = std::max(curve_.peak_bytes, low);
    if (!plan(high) || low >= high || !plan(low)) return finish();  // there may be nothing to choose from
    // The middle first: where the time is over, what there is spans the whole.
    for (const int step : {4, 2, 6, 1, 3, 5, 7}) {
      if (!plan(low + (high - low) / kSteps * static_cast<uint64_t>(step))) return finish();
    }
    for (int i = 0; i < kHalvings; ++i) {
      const uint64_t fast = full_speed();
      const uint64_t slow = slower_than(fast);
      if (fast == 0 || slow == 0 || !plan(slow + (fast - slow) / 2)) break;
    }
    return finish();
  }

 private:
  bool plan(uint64_t budget) {
    if (std::chrono::steady_clock::now() > end_) return false;
    options_.budget_bytes = analyzer::budget_as_run(workload_, budget);
    const Result<plan::Plan> plan = analyzer::make_plan(workload_, options_);
    if (!plan.ok()) return false;
    curve_.points.push_back(
        {budget, plan.value().predicted_ns, plan.value().offload_bytes + plan.value().reload_bytes});
    std::sort(curve_.points.begin(), curve_.points.end(),
              [](const BudgetPoint& a, const BudgetPoint& b) { return a.budget_bytes < b.budget_bytes; });
    return true;
  }

  // From there on no larger budget is slow.
  uint64_t full_speed() const {
    uint64_t found = 0;
    for (auto at = curve_.points.rbegin(); at != curve_.points.rend(); ++at) {
      if (at->time_ns > curve_.compute_ns + curve_.compute_ns / 50) break;
      found = at->budget_bytes;
    }
    return found;
  }
  uint64_t slower_than(uint64_t budget) const {
    uint64_t found = 0;
    for (const BudgetPoint& one : curve_.points) {
      if (one.budget_bytes < budget) found = one.budget_bytes;
    }
    return found;
  }

  BudgetCurve finish() {
    curve_.full_speed_bytes = full_speed();
    if (curve_.points.size() < 2) curve_.policy.clear();
    return std::move(curve_);
  }

  const analyzer::Workload& workload_;
  const std::chrono::steady_clock::time_point end_;
  analyzer::PlanOptions options_;
  BudgetCurve curve_;
};

}  // namespace

BudgetCurve budget_curve(const analyzer::Workload& workload, plan::Safety safety, uint64_t limit_ms) {
  return Curve(workload, safety, limit_ms).make();
}

}  // namespace reprise::report

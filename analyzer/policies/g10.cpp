// G10 (MICRO 2023): tensors leave for long inactive periods, those that relieve the most pressure first, to the SSD or,
// where its link is crowded, to the host; what still does not fit is evicted on demand, least recently used first. The
// reload begins as early as there is room (g10), or at the latest safe time (g10_late).
#include "analyzer/policies/g10_periods.h"
#include "analyzer/policies/least_recently_used.h"
#include "analyzer/policies/planned_periods.h"
#include "analyzer/policies/policy.h"

namespace reprise::analyzer {
namespace {

class G10 : public Policy {
 public:
  explicit G10(bool eager) : eager_(eager) {}
  std::string_view name() const override { return eager_ ? "g10" : "g10_late"; }
  Schedule schedule(const PolicyInput& input) const override {
    const G10Plan plan = plan_g10(input.graph, input.machine, input.capacity);
    std::vector<AwayPeriod> periods;
    for (const G10Period& period : plan.periods) {
      periods.push_back(period);
      if (eager_) periods.back().reload_begin = period.earliest_reload_begin;
    }
    LeastRecentlyUsed fallback;
    return schedule_periods(input, periods, plan.call_of_op, fallback);
  }

 private:
  bool eager_;
};

}  // namespace

const Policy& g10_policy() {
  static const G10& policy = *new G10(true);
  return policy;
}

const Policy& g10_late_policy() {
  static const G10& policy = *new G10(false);
  return policy;
}

}  // namespace reprise::analyzer

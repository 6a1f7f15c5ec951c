// Ours: the schedules of other policies, played in time with memory as a mere number of chunks (schedule/retime.h),
// which moves every copy to where links and room allow it; the fastest one wins. The planner compares them in full, and
// adds recompute.
#include <optional>

#include "analyzer/policies/policy.h"
#include "analyzer/schedule/retime.h"
#include "analyzer/schedule/tiers.h"

namespace reprise::analyzer {
namespace {

RetimedSchedule play(const Policy& policy, const PolicyInput& input) {
  Schedule schedule = policy.schedule(input);
  assign_tiers(input.graph, input.machine, schedule);
  return retime(input.graph, input.machine, schedule, input.capacity);
}

class Retimed : public Policy {
 public:
  explicit Retimed(const Policy& base) : base_(base) {}
  std::string_view name() const override { return "reprise"; }
  Schedule schedule(const PolicyInput& input) const override {
    if (input.graph.devices > 1) return base_.schedule(input);
    return play(base_, input).schedule;
  }

 private:
  const Policy& base_;
};

class Reprise : public Policy {
 public:
  std::string_view name() const override { return "reprise"; }
  Schedule schedule(const PolicyInput& input) const override {
    if (input.graph.devices > 1) return link_aware_policy().schedule(input);
    std::optional<RetimedSchedule> best;
    for (const Policy* policy : {&link_aware_policy(), &g10_late_policy(), &gemini_policy()}) {
      RetimedSchedule retimed = play(*policy, input);
      if (!best || is_faster(retimed, *best)) best = std::move(retimed);
    }
    return std::move(best->schedule);
  }

 private:
  // No time: it got stuck.
  static bool is_faster(const RetimedSchedule& a, const RetimedSchedule& b) {
    return a.iteration_ns != 0 && (b.iteration_ns == 0 || a.iteration_ns < b.iteration_ns);
  }
};

}  // namespace

const Policy& reprise_policy() {
  static const Reprise& policy = *new Reprise;
  return policy;
}

const std::vector<const Policy*>& searched_policies() {
  static const auto& policies = *new std::vector<const Policy*>{
      &link_aware_policy(), &g10_late_policy(), &gemini_policy(), &disco_policy(), &lru_policy(),
  };
  return policies;
}

const std::vector<const Policy*>& reprise_members() {
  static const auto& members = *new std::vector<const Policy*>{
      &link_aware_policy(),
      &g10_late_policy(),
      &gemini_policy(),
      &disco_policy(),
      &lru_policy(),
      new Retimed(link_aware_policy()),
      new Retimed(g10_late_policy()),
      new Retimed(gemini_policy()),
      new Retimed(disco_policy()),
      new Retimed(lru_policy()),
  };
  return members;
}

}  // namespace reprise::analyzer

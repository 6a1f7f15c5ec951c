#include "replay/plans/why_unplanned.h"

#include <algorithm>
#include <cstdio>

#include "analyzer/plan/enforced.h"
#include "preload/base/readable.h"
#include "replay/issue/held_memory.h"

namespace reprise::replay {
namespace {

// A planner that was asked so shortly before the end had no time.
constexpr uint64_t kLastMomentNs = 500'000'000;

}  // namespace

bool WhyUnplanned::on_demand(const Cause& cause, const std::string& reason) noexcept {
  if (!too_little_.empty() || reason == on_demand_) return false;
  on_demand_ = reason;
  shared_.run_log.write_on_demand(cause, reason);
  return true;
}

void WhyUnplanned::not_yet(const std::string& message) noexcept {
  not_yet_ = message;
  not_yet_after_ = shared_.counters.iterations_on_demand.load();
}

void WhyUnplanned::too_little(const Cause& cause, const std::string& reason, uint64_t least_bytes) noexcept {
  too_little_ = on_demand_ = reason;
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::on_demand::line);
  line.add(run_log::on_demand::cause, cause)
      .add(run_log::on_demand::reason, reason)
      .add(run_log::on_demand::least_bytes, least_bytes);
  shared_.run_log.write(line);
}

void WhyUnplanned::forget() noexcept {
  too_little_.clear();
  on_demand_.clear();
}

void WhyUnplanned::end(const PlanFollower& follower, uint32_t plans, bool given) noexcept {
  RunLogWriter& log = shared_.run_log;
  const bool none_ruled = shared_.counters.iterations_planned.load() == 0;
  for (uint32_t plan = 0; plan < plans; ++plan) {
    const KnownPlan& known = follower.known(plan);
    if (follower.has_ruled(plan) || known.better) continue;
    const std::string late = given ? std::string() : known.why_too_late(follower.calls_seen());
    const std::string never = known.why_never_begun();
    const std::string left =
        none_ruled ? std::string() : known.where_left();  // else the lines of where it was left tell
    if (!late.empty()) {
      log.write_on_demand(run_log::on_demand::unfinished, late, plan);
    } else if (!never.empty()) {
      log.write_on_demand(run_log::on_demand::never_began, never, plan);
    } else if (!left.empty()) {
      log.write_on_demand(run_log::on_demand::left, left, plan);
    }
  }
  if (!given || !none_ruled || plans == 0) return;
  const KnownPlan& known = follower.known(0);
  const std::string refusal = shared_.refusal.get();
  given_idle_ = refusal.empty() ? known.why_never_begun() : refusal;
  if (given_idle_.empty()) given_idle_ = known.where_left();
  if (given_idle_.empty()) given_idle_ = "the program ended within its first iteration";
  if (!refusal.empty() && shared_.refused_for_room.load(std::memory_order_acquire)) how_room_ = how_to_give_it_room();
}

// A budget that the device cannot give is not the one to make larger.
std::string WhyUnplanned::how_to_give_it_room() const noexcept {
  const plan::Plan& plan = shared_.plans[0].load(std::memory_order_relaxed)->plan;
  const RoomFigures room = shared_.room.get();
  const uint64_t peak = peak_beside_outside(shared_, shared_.counters.peak_footprint_bytes.load());
  const uint64_t budget = known_budget(budget_of(shared_), peak, shared_.counters.outside_bytes.load());
  if (room.total == 0 || room.room >= budget) {
    const std::string none = plan::why_no_plan_fits(plan, budget);
    return none.empty() ? "give it a larger budget, or make a plan for this one" : none;
  }
  return how_to_get_room(room, plan.budget_bytes) +
         (room.room >= plan.minimum_bytes ? ", or make a plan for " + readable_bytes(room.room) : "");
}

void WhyUnplanned::end_asked(uint64_t waited_ns) noexcept {
  char why[128];
  std::snprintf(why, sizeof why,
                "the program ended before a plan was made of what it repeats, %.1f s after the planner was asked",
                static_cast<double>(waited_ns) / 1e9);
  // A question of the last moment says nothing of why there was no plan before; the answer to the one before does.
  const bool answered = waited_ns < kLastMomentNs && !not_yet_.empty();
  on_demand(run_log::on_demand::unfinished,
            answered ? why + (" once more; before, it said: " + not_yet_) : std::string(why));
}

void WhyUnplanned::end_unplanned(uint64_t calls, bool recorded, bool looked_for) noexcept {
  if (!recorded) {
    on_demand(run_log::on_demand::not_recorded, "nothing was recorded that a plan could be made of");
  } else if (looked_for && on_demand_ == not_yet_ && !not_yet_.empty() &&
             shared_.counters.iterations_on_demand.load() > not_yet_after_) {
    on_demand(run_log::on_demand::unfinished,
              "the program ended before enough of it was recorded for a plan: when it was last asked, the planner "
              "said: " +
                  not_yet_);
  } else if (on_demand_.empty()) {
    on_demand(run_log::on_demand::no_repetition, "the program ended before its calls repeated: it made " +
                                                     std::to_string(calls) + " that work on the device or its memory");
  }
}

}  // namespace reprise::replay

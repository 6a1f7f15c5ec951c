#include "replay/plans/why_unplanned.h"

#include <algorithm>
#include <cstdio>

#include "analyzer/plan/enforced.h"
#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

// A planner that was asked so shortly before the end had no time.
constexpr uint64_t kLastMomentNs = 500'000'000;

}  // namespace

bool WhyUnplanned::on_demand(const Word& cause, const std::string& reason) noexcept {
  if (!said_.too_little.empty() || reason == said_.on_demand) return false;
  said_.on_demand = reason;
  shared_.run_log.write_on_demand(cause, reason);
  return true;
}

void WhyUnplanned::not_yet(const std::string& message) noexcept {
  said_.not_yet = message;
  said_.not_yet_after = shared_.counters.iterations_on_demand.load();
}

void WhyUnplanned::too_little(const Word& cause, const std::string& reason, uint64_t least_bytes) noexcept {
  said_.too_little = said_.on_demand = reason;
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::on_demand::line);
  line.add(run_log::on_demand::cause, cause)
      .add(run_log::on_demand::reason, reason)
      .add(run_log::on_demand::least_bytes, least_bytes);
  shared_.run_log.write(line);
}

void WhyUnplanned::forget() noexcept {
  said_.too_little.clear();
  said_.on_demand.clear();
}

void WhyUnplanned::end(const PlanFollower& follower, uint32_t plans, bool given) noexcept {
  RunLogWriter& log = shared_.run_log;
  const bool none_ruled = shared_.counters.iterations_planned.load() == 0;
  for (uint32_t plan = 0; plan < plans; ++plan) {
    const KnownPlan& known = follower.known(plan);
    if (follower.has_ruled(plan) || known.better || known.is_guess()) continue;
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
  said_.given_idle = refusal.empty() ? known.why_never_begun() : refusal;
  if (said_.given_idle.empty()) said_.given_idle = known.where_left();
  if (said_.given_idle.empty()) said_.given_idle = phrase<Cause::ended_at_first>();
  if (!refusal.empty() && shared_.refused_for_room.load(std::memory_order_acquire))
    said_.how_room = how_to_give_it_room();
}

// A budget that the device cannot give is not the one to make larger.
std::string WhyUnplanned::how_to_give_it_room() const noexcept {
  const plan::Plan& plan = shared_.plans[0].load(std::memory_order_relaxed)->plan;
  const RoomFigures room = shared_.account.room.get();
  const uint64_t peak = shared_.account.peak_beside_outside(shared_.counters.peak_footprint_bytes.load());
  const uint64_t budget = shared_.account.known(peak, shared_.counters.outside_bytes.load());
  if (room.total == 0 || room.room >= budget) {
    const std::string none = plan::why_no_plan_fits(plan, budget);
    return none.empty() ? phrase<Cause::larger_budget_or_plan>() : none;
  }
  return how_to_get_room(room, plan.budget_bytes) +
         (room.room >= plan.minimum_bytes ? words<Cause::or_plan_for>(room.room) : "");
}

void WhyUnplanned::end_asked(uint64_t waited_ns) noexcept {
  const std::string why = words<Cause::ended_unanswered>(waited_ns);
  // A question of the last moment says nothing of why there was no plan before; the answer to the one before does.
  const bool answered = waited_ns < kLastMomentNs && !said_.not_yet.empty();
  on_demand(run_log::on_demand::unfinished, answered ? words<Cause::ended_unanswered_again>(why, said_.not_yet) : why);
}

void WhyUnplanned::end_unplanned(uint64_t calls, bool recorded, bool looked_for) noexcept {
  if (!recorded) {
    on_demand(run_log::on_demand::not_recorded, phrase<Cause::ended_unrecorded>());
  } else if (looked_for && said_.on_demand == said_.not_yet && !said_.not_yet.empty() &&
             shared_.counters.iterations_on_demand.load() > said_.not_yet_after) {
    on_demand(run_log::on_demand::unfinished, words<Cause::ended_too_early>(said_.not_yet));
  } else if (said_.on_demand.empty()) {
    on_demand(run_log::on_demand::no_repetition, words<Cause::ended_unrepeated>(calls));
  }
}

}  // namespace reprise::replay

#include "replay/follow/plan_follower.h"

#include <algorithm>

#include "preload/base/causes.h"
#include "preload/trace/signature.h"
#include "replay/follow/difference.h"
#include "replay/plan/same_call.h"

namespace reprise::replay {
namespace {
using plan::CallKind;

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Of the tensor that the first call allocates, where sizes vary; 0 for others.
uint64_t first_size(const plan::Plan& plan) noexcept {
  const plan::Call& first = plan.calls[0];
  return has_any_size(first) && first.kind == CallKind::allocate ? plan.tensors[first.tensor].size : 0;
}

// Of two plans that may begin at call `now`: the one that the program has just gone through, the longer of two such.
// Else the one that has failed least of late; the one for smaller sizes; the newer one, for it was made where the other
// did not do.
bool goes_before(const KnownPlan& a, const KnownPlan& b, uint64_t now) noexcept {
  if (a.was_rehearsed(now) != b.was_rehearsed(now)) return a.was_rehearsed(now);
  if (a.was_rehearsed(now) && a.calls() != b.calls()) return a.calls() > b.calls();
  if (!a.was_rehearsed(now) && a.failures() != b.failures()) return a.failures() < b.failures();
  return first_size(a.plan()) <= first_size(b.plan());
}

// By one that can be used, and has not failed of late.
bool is_replaced(const std::vector<KnownPlan>& plans, uint32_t plan, const Shared& shared) noexcept {
  const std::optional<uint32_t> better = plans[plan].better;
  return better && plans[*better].failures() == 0 && !shared.plan_unusable[*better].load(std::memory_order_relaxed);
}

}  // namespace

void PlanFollower::use(const PlanIndex* index, std::optional<uint32_t> replaces) noexcept {
  if (replaces) plans_[*replaces].better = static_cast<uint32_t>(plans_.size());
  plans_.emplace_back(index, repetition_.counter_of(*index), calls_);
  rounds_.plan_added();
  if (!index->is_guess) repetition_.plan_is_known();
}

FollowedCall PlanFollower::op(const Command& command) noexcept {
  return step({CallKind::op, command.signature, structure_of(command)}, command.name, command.blind,
              Overloaded{[&](FollowedCall* step) { return matcher_.op(command, &step->match); },
                         [&](Rehearsal* rehearsal) { return rehearsal->op(command); },
                         [&](const Matcher* matcher) { return difference(*matcher, command); }});
}

FollowedCall PlanFollower::allocate(const AllocateCall& call) noexcept {
  return step({CallKind::allocate, trace::allocate_signature(call.origin, call.size),
               trace::allocate_structure(call.origin), call.size},
              phrase<Cause::an_allocation>(), false,
              Overloaded{[&](FollowedCall* step) { return matcher_.allocate(call, &step->match, &step->address); },
                         [&](Rehearsal* rehearsal) { return rehearsal->allocate(call); },
                         [&](const Matcher* matcher) { return difference(*matcher, call); }});
}

FollowedCall PlanFollower::free(const FreeCall& call) noexcept {
  return step({CallKind::free, trace::free_signature(call.origin, call.size), trace::free_structure(call.origin)},
              "a free", false,
              Overloaded{[&](FollowedCall* step) { return matcher_.free(call, &step->match); },
                         [&](Rehearsal* rehearsal) { return rehearsal->free(call); },
                         [&](const Matcher* matcher) { return difference(*matcher, call); }});
}

template <typename Same>
FollowedCall PlanFollower::step(const CalledAs& call, const char* got, bool blind, Same same) noexcept {
  FollowedCall step;
  this_call_ = calls_ + 1;
  if (following_ && shared_.dispatcher_divergences.load(std::memory_order_acquire) != began_.divergences) {
    leave_as_dispatcher();
  }
  bool gave_way = false;
  if (following_ && matcher_.next() == 0) {
    if (const std::optional<uint32_t> next = successor(call); next && next == plans_[current_].better) {
      gave_way = true;
      end_plan();
      repetition_.left_planned_iterations();
    } else if (next) {
      diverge(got);
    }
  }
  if (following_) {
    const bool doubted = call.size != 0 && joins_.doubts(current_, matcher_.next(), call.size);
    const auto here = [&] { return same(&step); };
    step.planned = !doubted && here();
    if (!step.planned) step.left_out = joins_.join(&matcher_, current_, this_call_, plans_[current_].calls(), here);
    step.planned = step.planned || step.left_out != nullptr || (doubted && here());
    if (step.planned && call.size != 0 && has_any_size(matcher_.plan().calls[step.match.call])) {
      joins_.taken(current_, step.match.call, call.size, this_call_);
    }
    if (step.planned) {
      rounds_.called();
      ++calls_;
      repetition_.planned_iteration(step.match.iteration);
      rehearse(call, same);
      return step;
    }
    growth_.begin(current_, matcher_, live_, shared_.arena_all);
    diverge(got, same(static_cast<const Matcher*>(&matcher_)));
  }
  if (blind) {
    step.look_first = true;
    return step;
  }
  rounds_.called();
  ++calls_;
  const LoopWord word = word_of(call.signature, call.structure, live_.count(), live_.bytes());
  if (!rounds_.holds_call()) try_to_begin(call, same, &step);
  if (gave_way && !step.planned) plans_[current_].better.reset();  // in vain
  rehearse(call, same);
  if (step.planned) {
    growth_.stop();
    return step;
  }
  growth_.begin(plans_, call, live_.count(), shared_.arena_all);
  if (growth_.add(same)) step.outgrown = &growth_;
  const bool repeats = repetition_.add(word, call.kind == CallKind::free ? 0 : call.structure);
  step.ask_planner = repeats && repetition_.repeating().period() >= rounds_.shortest_period();
  return step;
}

// For each plan that does not rule the call.
template <typename Same>
void PlanFollower::rehearse(const CalledAs& call, Same same) noexcept {
  for (uint32_t i = 0; i < plans_.size(); ++i) {
    if ((following_ && i == current_) || is_replaced(plans_, i, shared_)) continue;
    plans_[i].rehearse(call, live_, shared_.arena_all, this_call_, same);
  }
}

template <typename Same>
void PlanFollower::try_to_begin(const CalledAs& call, Same same, FollowedCall* step) noexcept {
  const auto none = static_cast<uint32_t>(plans_.size());
  uint32_t best = none;
  for (uint32_t plan = 0; plan < none; ++plan) {
    if (!begins_here(plan, call, same, step)) continue;
    if (best == none || goes_before(plans_[plan], plans_[best], this_call_)) best = plan;
  }
  *step = {};
  if (best == none) return;
  if (repetition_.watching() && rounds_.hold_now()) {
    step->holds = true;
    return;
  }
  repetition_.plan_begins();
  cast_.find(&plans_[best], live_, shared_.arena.plan, this_call_);
  begin(best);
  step->planned = step->activate = same(step);
  step->plan = best;
  step->cast = &cast_.addresses();
  following_ = true;
  repetition_.plan_in_force();
  plans_[best].begun();
  rounds_.activated(best);
}

// What is alive are the plan's persistent tensors, and the call is the plan's first.
template <typename Same>
bool PlanFollower::begins_here(uint32_t plan, const CalledAs& call, Same same, FollowedCall* step) noexcept {
  if (is_replaced(plans_, plan, shared_)) return false;
  KnownPlan& known = plans_[plan];
  if (!known.first_call_came(call, live_.count())) return false;
  if (shared_.plan_unusable[plan].load(std::memory_order_relaxed)) return false;
  if (!known.may_be_first(call, live_.count()) || !cast_.find(&known, live_, shared_.arena.plan, this_call_) ||
      !known.is_due(this_call_)) {
    return false;
  }
  begin(plan);
  return same(step);
}

// The plan's iteration is over: which one goes on from here. A better one of the same loop does, or one of another
// iteration, longer, that has been gone through meanwhile, of which it is a part.
std::optional<uint32_t> PlanFollower::successor(const CalledAs& call) noexcept {
  const auto none = static_cast<uint32_t>(plans_.size());
  const uint32_t better = matcher_.iteration() == began_.iteration ? none : plans_[current_].better.value_or(none);
  for (uint32_t plan = 0; plan < none; ++plan) {
    KnownPlan& other = plans_[plan];
    const bool is_longer = other.was_rehearsed(this_call_) && other.calls() > plans_[current_].calls();
    if (plan != better && (!is_longer || is_replaced(plans_, plan, shared_))) continue;
    const bool usable = !shared_.plan_unusable[plan].load(std::memory_order_relaxed);
    if (usable && other.is_due(this_call_) && other.may_be_first(call, live_.count()) &&
        cast_.find(&other, live_, shared_.arena.plan, this_call_)) {
      return plan;
    }
  }
  return std::nullopt;
}

bool PlanFollower::has_ruled(uint32_t plan) const noexcept {
  const uint32_t loop = plans_[plan].loop();
  const auto of_loop = [&](const KnownPlan& known) { return known.loop() == loop && known.iterations() > 0; };
  if (std::any_of(plans_.begin(), plans_.end(), of_loop)) return true;
  return following_ && plans_[current_].loop() == loop && matcher_.iteration() > began_.iteration;
}

// With cast_.
void PlanFollower::begin(uint32_t plan) noexcept {
  current_ = plan;
  matcher_.begin(&plans_[plan].index(), cast_.addresses(), shared_.arena_all, repetition_.next_iteration());
  began_.iteration = repetition_.next_iteration();
  began_.divergences = shared_.dispatcher_divergences.load(std::memory_order_acquire);
}

void PlanFollower::end_plan() noexcept {
  following_ = false;
  KnownPlan& known = plans_[current_];
  rounds_.ruled(matcher_.iteration() - began_.iteration);
  known.ruled(matcher_.iteration() - began_.iteration);
  repetition_.plan_ends(known.loop(), matcher_.next(), known.index());
  ended_.handovers = matcher_.end();
  joins_.left(this_call_);
}

// The dispatcher has ended the plan, or could not begin it, and has logged why.
void PlanFollower::leave_as_dispatcher() noexcept {
  const bool refused = !shared_.refusal.get().empty();
  if (refused) began_.iteration = matcher_.iteration();  // however far the program has come, the plan ruled none of it
  end_plan();
  ended_.whole = false;
  if (matcher_.iteration() > began_.iteration) return repetition_.left_planned_iterations();
  rounds_.activated_in_vain();
  plans_[current_].left_early(refused, refused);
  repetition_.left_plan(matcher_.next());  // an iteration on demand that began with the plan
}

void PlanFollower::diverge(const char* got, const std::string& difference) noexcept {
  KnownPlan& plan = plans_[current_];
  end_plan();
  const bool early = matcher_.iteration() == began_.iteration;
  std::string why = "expected " + matcher_.expected() + ", got " + got;
  if (!difference.empty()) why += " (" + difference + ")";
  if (early) rounds_.activated_in_vain();
  plan.diverged(early, matcher_.next(), calls_, std::move(why));
  repetition_.left_planned_iterations();
  if (matcher_.lacks_frees()) ended_.whole = false;
  if (matcher_.next() == 0) {
    // A whole number of iterations, then another call: that is how loops end or pause, and no divergence.
    RunLogLine line(run_log::loop_end::line);
    line.add(run_log::loop_end::iteration, matcher_.iteration()).add(run_log::loop_end::got, std::string(got));
    shared_.run_log.write(line);
    return;
  }
  ended_.whole = false;
  shared_.counters.divergences.fetch_add(1, std::memory_order_relaxed);
  RunLogLine line(run_log::divergence::line);
  line.add(run_log::divergence::iteration, matcher_.iteration())
      .add(run_log::divergence::call, matcher_.next())
      .add(run_log::divergence::expected, matcher_.expected())
      .add(run_log::divergence::got, std::string(got));
  if (!difference.empty()) line.add(run_log::divergence::difference, difference);
  shared_.run_log.write(line);
  say<Cause::plan_differs>(matcher_.iteration(), matcher_.next(), plan.left_for());
}

void PlanFollower::interrupt(const char* what) noexcept {
  if (!following_) return;
  diverge(what);
  plans_[current_].interrupted();
  growth_.stop();
  ended_.whole = false;  // what comes now is no call of an iteration
}

}  // namespace reprise::replay

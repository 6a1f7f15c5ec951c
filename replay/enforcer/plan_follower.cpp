#include "replay/enforcer/plan_follower.h"

#include <algorithm>
#include <bit>

#include "preload/base/log.h"
#include "preload/base/readable.h"
#include "preload/trace/signature.h"
#include "replay/enforcer/difference.h"

namespace reprise::replay {
namespace {
template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// Early failures before a plan that the program does go through has to be rehearsed more than once, ...
constexpr uint64_t kPatience = 3;
constexpr uint64_t kMostDoublings = 6;  // ... and twice as often each time, up to here
// Where there was no room for it: so many, and so many doublings at once, as the planner needs iterations in one piece
// to make one that has room.
constexpr uint64_t kPatienceWithoutRoom = 2;
constexpr uint64_t kWithoutRoom = 2;
constexpr size_t kMostRehearsals = 64;  // of a plan at once
// Rounds: what happens from one activation to the next.
constexpr uint64_t kRoundsBeforeHold = 8;  // and eight times as many before the second
constexpr uint64_t kRoundsHeld = 4;        // the detector needs three
constexpr uint64_t kMostHolds = 2;
constexpr uint64_t kFewIterations = 8;  // of plans, in a round

uint64_t calls_of_program(const plan::Plan& plan) noexcept {
  return static_cast<uint64_t>(std::count_if(plan.calls.begin(), plan.calls.end(), [](const plan::Call& call) {
    return !call.inserted && call.recompute_of == plan::kNone;
  }));
}

// "gemm", "an allocation of 1.5 MiB".
std::string name_of(const plan::Plan& plan, const plan::Call& call) {
  if (!call.name.empty()) return call.name;
  const std::string what = call.kind == plan::CallKind::free ? "a free" : "an allocation";
  return call.tensor == plan::kNone ? what : what + " of " + readable_bytes(plan.tensors[call.tensor].size);
}

std::string calls_text(uint64_t count) { return std::to_string(count) + (count == 1 ? " call" : " calls"); }

}  // namespace

using plan::CallKind;

void PlanFollower::use(const PlanIndex* plan_index) noexcept {
  plans_.emplace_back(plan_index, counter_of(*plan_index));
  tell_loops();
  plans_.back().ready_at = calls_in_all_;
  end_hold();
  activations_ = planned_iterations_ = calls_ = in_use_ = 0;
}

// Where none counts this loop yet, what of it is over is in the detector's words.
uint32_t PlanFollower::counter_of(const PlanIndex& index) noexcept {
  LoopCounter loop(words_of(index));
  const auto same = std::find_if(loops_.begin(), loops_.end(),
                                 [&](const LoopCounter& other) { return other.words() == loop.words(); });
  if (same != loops_.end()) return static_cast<uint32_t>(same - loops_.begin());
  detector_.for_each_word([&](uint64_t word) { loop.add(word); });
  loops_.push_back(std::move(loop));
  return static_cast<uint32_t>(loops_.size() - 1);
}

CountedLoops PlanFollower::take_counted() noexcept {
  for (LoopCounter& loop : loops_) loop.start_over();
  return {std::move(loops_), next_iteration_};
}

void PlanFollower::allocated(uint64_t allocation, CUdeviceptr address, uint64_t size, trace::Origin origin) noexcept {
  live_[allocation] = {address, size, origin};
  live_bytes_ += size;
  footprint_.allocated(allocation, size);
  if (in_chunks_.is_open()) in_chunks_.allocated(allocation, size);
}

void PlanFollower::freed(uint64_t allocation) noexcept {
  const auto found = live_.find(allocation);
  if (found == live_.end()) return;
  live_bytes_ -= found->second.size;
  footprint_.freed(allocation, found->second.size);
  if (in_chunks_.is_open()) in_chunks_.freed(allocation, found->second.size);
  live_.erase(found);
}

FollowedCall PlanFollower::op(const Command& command) noexcept {
  return step(CallKind::op, command.signature, command.name, command.blind,
              Overloaded{[&](FollowedCall* step) { return matcher_.op(command, &step->match); },
                         [&](Rehearsal* rehearsal) { return rehearsal->op(command); },
                         [&](const Matcher* matcher) { return difference(*matcher, command); }});
}

FollowedCall PlanFollower::allocate(const AllocateCall& call) noexcept {
  return step(CallKind::allocate, trace::allocate_signature(call.origin, call.size), "an allocation", false,
              Overloaded{[&](FollowedCall* step) { return matcher_.allocate(call, &step->match, &step->address); },
                         [&](Rehearsal* rehearsal) { return rehearsal->allocate(call); },
                         [&](const Matcher* matcher) { return difference(*matcher, call); }});
}

FollowedCall PlanFollower::free(const FreeCall& call) noexcept {
  return step(CallKind::free, trace::free_signature(call.origin, call.size), "a free", false,
              Overloaded{[&](FollowedCall* step) { return matcher_.free(call, &step->match); },
                         [&](Rehearsal* rehearsal) { return rehearsal->free(call); },
                         [&](const Matcher* matcher) { return difference(*matcher, call); }});
}

// The dispatcher has ended the plan, or could not begin it, and has logged why.
void PlanFollower::leave_as_dispatcher() noexcept {
  const bool refused = !shared_.refusal.get().empty();
  if (refused) began_iteration_ = matcher_.iteration();  // however far the program has come, the plan ruled none of it
  end_plan();
  whole_ = false;
  if (matcher_.iteration() > began_iteration_) {
    on_demand_began_ns_ = 0;
    calls_in_period_ = 0;
    return;
  }
  left_early(&plans_[current_], refused ? kWithoutRoom : 0, refused);
  calls_in_period_ = matcher_.next();  // an iteration on demand that began with the plan
}

template <typename Same>
FollowedCall PlanFollower::step(CallKind kind, uint64_t signature, const char* got, bool blind, Same same) noexcept {
  FollowedCall step;
  this_call_ = calls_in_all_ + 1;
  if (following_ && shared_.dispatcher_divergences.load(std::memory_order_acquire) != divergences_seen_) {
    leave_as_dispatcher();
  }
  if (following_ && is_part_of_another(kind, signature)) diverge(got);
  if (following_) {
    step.planned = same(&step);
    if (step.planned) {
      ++calls_;
      ++calls_in_all_;
      if (step.match.iteration >= next_iteration_) next_iteration_ = step.match.iteration + 1;
      rehearse(kind, signature, same);
      return step;
    }
    diverge(got, same(static_cast<const Matcher*>(&matcher_)));
  }
  if (blind) {
    step.look_first = true;
    return step;
  }
  ++calls_;
  ++calls_in_all_;
  const uint64_t word = call_word(signature, live_.size(), live_bytes_);
  if (held_calls_ > 0) {
    if (--held_calls_ == 0) end_hold();
  } else {
    try_to_begin(kind, signature, same, &step);
  }
  rehearse(kind, signature, same);
  if (step.planned) return step;
  count_loops(word);
  step.ask_planner = detect(word);
  return step;
}

bool PlanFollower::may_be_first(const KnownPlan& known, CallKind kind, uint64_t signature) const noexcept {
  const plan::Call& first = known.index->plan.calls[0];
  return first.kind == kind && first.signature == signature && live_.size() == known.index->persistent_count;
}

// For each plan that does not rule the call.
template <typename Same>
void PlanFollower::rehearse(CallKind kind, uint64_t signature, Same same) noexcept {
  for (uint32_t i = 0; i < plans_.size(); ++i) {
    if (following_ && i == current_) continue;
    KnownPlan& known = plans_[i];
    std::vector<Rehearsal>& under_way = known.rehearsals;
    if (may_be_first(known, kind, signature) && under_way.size() < kMostRehearsals) {
      under_way.emplace_back(known.index, shared_.arena_all);
    }
    const auto over = [&](Rehearsal& rehearsal) {
      if (!same(&rehearsal)) return true;
      if (!rehearsal.finished()) return false;
      known.roles = rehearsal.allocations();
      known.rehearsed_at = this_call_;
      ++known.rehearsed;
      return true;
    };
    std::erase_if(under_way, over);
  }
}

// The iteration that was over with the last call was the plan's.
bool PlanFollower::was_rehearsed(const KnownPlan& known) const noexcept {
  return known.rehearsed_at != 0 && known.rehearsed_at + 1 == this_call_;
}

// A plan that was left in its first iteration waits until the program has gone through it without it.
bool PlanFollower::is_due(const KnownPlan& known) const noexcept {
  return known.early_failures == 0 || (was_rehearsed(known) && known.rehearsed >= known.distance);
}

template <typename Same>
void PlanFollower::try_to_begin(CallKind kind, uint64_t signature, Same same, FollowedCall* step) noexcept {
  const auto none = static_cast<uint32_t>(plans_.size());
  uint32_t best = none;
  for (uint32_t plan = 0; plan < none; ++plan) {
    if (begins_here(plan, kind, signature, same, step) && (best == none || goes_before(plan, best))) best = plan;
  }
  *step = {};
  if (best == none) return;
  if (hold_now()) {
    step->holds = true;
    return;
  }
  // It repeats from somewhere in the iteration, and the plan begins at its start: what is mostly over counts.
  if (on_demand_began_ns_ != 0 && 2 * calls_in_period_ >= period_) on_demand_boundary();
  on_demand_began_ns_ = period_ != 0 ? RunLogWriter::now_ns() : 0;
  calls_in_period_ = 0;
  find_cast(&plans_[best]);
  begin(best);
  step->planned = step->activate = same(step);
  step->plan = best;
  following_ = true;
  for (LoopCounter& loop : loops_) loop.start_over();
  plans_[best].begun = true;
  plans_[best].rehearsals.clear();
  ++activations_;
  in_use_ |= uint64_t{1} << best;
}

// What is alive are the plan's persistent tensors, and the call is the plan's first.
template <typename Same>
bool PlanFollower::begins_here(uint32_t plan, CallKind kind, uint64_t signature, Same same,
                               FollowedCall* step) noexcept {
  KnownPlan& known = plans_[plan];
  const plan::Call& first = known.index->plan.calls[0];
  if (first.kind != kind || first.signature != signature) return false;
  ++known.first_calls;
  known.alive_then = live_.size();
  known.difference = nullptr;
  if (shared_.plan_unusable[plan].load(std::memory_order_relaxed)) return false;
  // All persistent tensors are alive at the boundary, also where the first call is a free.
  if (live_.size() != known.index->persistent_count || !find_cast(&known) || !is_due(known)) return false;
  begin(plan);
  return same(step);
}

bool PlanFollower::find_cast(KnownPlan* known) noexcept {
  return (was_rehearsed(*known) && cast_as_rehearsed(*known)) || cast_in_order(known);
}

// They may lie where another plan has put them, but small ones there share places with those of this plan.
const char* PlanFollower::why_not(const KnownPlan& known, size_t tensor, const LiveAllocation& live) const noexcept {
  const plan::Tensor& wanted = known.index->plan.tensors[tensor];
  if (live.size != wanted.size) return "they had other sizes than in the recording";
  const bool in_the_way = known.index->ranges.contains(live.address) ||
                          (wanted.chunk_count == 0 && shared_.arena.plan.contains(live.address));
  return in_the_way ? "one of them lay where the plan needs room" : nullptr;
}

// As the recording found them: in the order of their allocation.
bool PlanFollower::cast_in_order(KnownPlan* known) noexcept {
  cast_.clear();
  for (const auto& [id, live] : live_) {
    known->difference = why_not(*known, cast_.size(), live);
    if (known->difference != nullptr) return false;
    cast_.push_back(live.address);
  }
  return true;
}

// As the iteration before has used them. Any of its size may stand for one that it did not use.
bool PlanFollower::cast_as_rehearsed(const KnownPlan& known) noexcept {
  const size_t count = known.index->persistent_count;
  std::vector<uint64_t> used(known.roles.begin(), known.roles.begin() + static_cast<std::ptrdiff_t>(count));
  std::erase(used, Rehearsal::kUnknown);
  std::sort(used.begin(), used.end());
  if (std::adjacent_find(used.begin(), used.end()) != used.end()) return false;
  std::vector<LiveAllocation> unused;
  for (const auto& [id, live] : live_) {
    if (!std::binary_search(used.begin(), used.end(), id)) unused.push_back(live);
  }
  cast_.clear();
  for (size_t tensor = 0; tensor < count; ++tensor) {
    LiveAllocation live{};
    if (known.roles[tensor] != Rehearsal::kUnknown) {
      const auto found = live_.find(known.roles[tensor]);
      if (found == live_.end()) return false;
      live = found->second;
    } else {
      const auto same_size = [&](const LiveAllocation& one) {
        return one.size == known.index->plan.tensors[tensor].size;
      };
      const auto found = std::find_if(unused.begin(), unused.end(), same_size);
      if (found == unused.end()) return false;
      live = *found;
      unused.erase(found);
    }
    if (why_not(known, tensor, live) != nullptr) return false;
    cast_.push_back(live.address);
  }
  return true;
}

size_t PlanFollower::calls_of(const KnownPlan& known) const noexcept { return loops_[known.loop].words().size(); }

// Of two plans that may begin here: the one that the program has just gone through, the longer of two such. Else the
// one that has failed least of late, the newer among equals, for it was made where the other did not do.
bool PlanFollower::goes_before(uint32_t plan, uint32_t other) const noexcept {
  const KnownPlan& a = plans_[plan];
  const KnownPlan& b = plans_[other];
  if (was_rehearsed(a) != was_rehearsed(b)) return was_rehearsed(a);
  if (was_rehearsed(a)) return calls_of(a) >= calls_of(b);
  return a.early_failures <= b.early_failures;
}

// The plan's iteration is over, and another one, longer, has been gone through meanwhile, of which it is a part.
bool PlanFollower::is_part_of_another(CallKind kind, uint64_t signature) noexcept {
  if (matcher_.next() != 0) return false;
  for (size_t plan = 0; plan < plans_.size(); ++plan) {
    KnownPlan& other = plans_[plan];
    if (!was_rehearsed(other) || calls_of(other) <= calls_of(plans_[current_])) continue;
    const bool usable = !shared_.plan_unusable[plan].load(std::memory_order_relaxed);
    if (usable && is_due(other) && may_be_first(other, kind, signature) && find_cast(&other)) return true;
  }
  return false;
}

std::string PlanFollower::why_never_begun(uint32_t plan) const noexcept {
  const KnownPlan& known = plans_[plan];
  if (known.begun) return {};
  const plan::Plan& made = known.index->plan;
  const std::string name = name_of(made, made.calls[0]);
  if (known.first_calls == 0) {
    const bool of_a_name = made.calls[0].kind == CallKind::op;  // others of it may come all the time
    return "no iteration began that the plan was made of: its first call, " + name +
           (of_a_name ? ", never came with the grid and sizes that were recorded" : ", never came");
  }
  std::string why = "no iteration began that the plan was made of: its first call, " + name + ", came " +
                    std::to_string(known.first_calls) + " times, the last time with " +
                    std::to_string(known.alive_then) + " allocations alive";
  if (known.alive_then != known.index->persistent_count) {
    return why + ", and the plan begins with " + std::to_string(known.index->persistent_count);
  }
  return known.difference == nullptr ? why : why + ": " + known.difference;
}

std::string PlanFollower::where_left(uint32_t plan) const noexcept {
  const KnownPlan& known = plans_[plan];
  if (known.left_for.empty()) return {};
  return "the plan came in force, and the program left it at call " + std::to_string(known.left_call) + " of " +
         std::to_string(calls_of_program(known.index->plan)) + ": " + known.left_for;
}

// A loop that goes on comes by its beginning within an iteration, whatever place of it the program is at; what follows
// the loop, as the frees of a program's end, is not told from it.
std::string PlanFollower::why_too_late(uint32_t plan) const noexcept {
  const KnownPlan& known = plans_[plan];
  const uint64_t calls = calls_of_program(known.index->plan);
  if (!known.begun) {
    const uint64_t since = calls_in_all_ - known.ready_at;
    if (since >= 2 * calls) return {};
    return "the program ended before another iteration began: the plan was ready " + calls_text(since) +
           " before the end";
  }
  const uint64_t since = calls_in_all_ - known.left_at;
  if (known.left_at == 0 || known.early_failures != 1 || since >= 2 * calls) return {};
  return "the plan came in force, and the loop was over before that iteration was: the program left it at call " +
         std::to_string(known.left_call) + " of " + std::to_string(calls) + ", " + calls_text(since) +
         " before the end";
}

bool PlanFollower::has_ruled(uint32_t plan) const noexcept {
  const uint32_t loop = plans_[plan].loop;
  const auto of_loop = [&](const KnownPlan& known) { return known.loop == loop && known.ruled > 0; };
  if (std::any_of(plans_.begin(), plans_.end(), of_loop)) return true;
  return following_ && plans_[current_].loop == loop && matcher_.iteration() > began_iteration_;
}

bool PlanFollower::never_lasts(uint32_t plan) const noexcept {
  const KnownPlan& known = plans_[plan];
  if (known.early_failures > 0 && known.lacks_room) return true;
  return known.early_failures >= kPatience || (known.early_failures > 0 && known.rehearsed == 0);
}

// With cast_.
void PlanFollower::begin(uint32_t plan) noexcept {
  current_ = plan;
  matcher_.begin(plans_[plan].index, cast_, shared_.arena_all, next_iteration_);
  began_iteration_ = next_iteration_;
  divergences_seen_ = shared_.dispatcher_divergences.load(std::memory_order_acquire);
}

// Plans that are left every few iterations are parts of what the program repeats: micro-steps of a step, the batches
// between two evaluations. Then none is followed for some of these rounds, so that they are recorded in one piece, and
// the planner can be asked about the whole.
bool PlanFollower::hold_now() noexcept {
  const auto in_turns = static_cast<uint64_t>(std::popcount(in_use_));
  if (!watching_ || holds_ == kMostHolds || activations_ == 0) return false;
  if (activations_ < in_turns * kRoundsBeforeHold << (holds_ * 3)) return false;
  const bool parts = planned_iterations_ <= activations_ * kFewIterations;
  if (parts) {
    ++holds_;
    const uint64_t round = calls_ / activations_ + 1;
    held_calls_ = kRoundsHeld * in_turns * round;
    // Rounds are not of one length; what repeats within the plans' iterations has been asked about.
    shortest_period_ = round - round / 8;
  }
  activations_ = planned_iterations_ = calls_ = in_use_ = 0;
  return parts;
}

void PlanFollower::end_plan() noexcept {
  following_ = false;
  KnownPlan& known = plans_[current_];
  planned_iterations_ += matcher_.iteration() - began_iteration_;
  known.ruled += matcher_.iteration() - began_iteration_;
  for (LoopCounter& loop : loops_) loop.start_over();
  loops_[known.loop].left_plan_at(matcher_.next(), *known.index);
  open_handovers_ = matcher_.end();
}

// To begin and to leave it costs more than an iteration on demand. So it is not tried before the program goes through
// it again; and where that does not help, ever later, but never never.
void PlanFollower::left_early(KnownPlan* known, uint64_t further, bool counts) noexcept {
  ++known->early_failures;
  known->lacks_room = further != 0;
  if (activations_ > 0) --activations_;  // it ruled nothing, so it is no part of what repeats
  const uint64_t patience = further == 0 ? kPatience : kPatienceWithoutRoom;
  const uint64_t doublings = known->early_failures < patience ? 0 : known->early_failures - patience + further;
  known->distance = counts ? uint64_t{1} << std::min(doublings, kMostDoublings) : 1;
  known->rehearsed = known->rehearsed_at = 0;
}

void PlanFollower::diverge(const char* got, const std::string& difference) noexcept {
  KnownPlan& plan = plans_[current_];
  end_plan();
  const bool early = matcher_.iteration() == began_iteration_;
  plan.left_at = early && matcher_.next() != 0 ? calls_in_all_ : 0;
  plan.left_call = matcher_.next();
  plan.left_for = "expected " + matcher_.expected() + ", got " + got;
  if (!difference.empty()) plan.left_for += " (" + difference + ")";
  if (early) left_early(&plan, 0, true);
  if (!early) plan.early_failures = 0;
  on_demand_began_ns_ = 0;
  calls_in_period_ = 0;
  if (matcher_.next() == 0) {
    // A whole number of iterations, then another call: that is how loops end or pause, and no divergence.
    RunLogLine line(run_log::loop_end::line);
    line.add(run_log::loop_end::iteration, matcher_.iteration()).add(run_log::loop_end::got, std::string(got));
    shared_.run_log.write(line);
    return;
  }
  whole_ = false;
  shared_.counters.divergences.fetch_add(1, std::memory_order_relaxed);
  RunLogLine line(run_log::divergence::line);
  line.add(run_log::divergence::iteration, matcher_.iteration())
      .add(run_log::divergence::call, matcher_.next())
      .add(run_log::divergence::expected, matcher_.expected())
      .add(run_log::divergence::got, std::string(got));
  if (!difference.empty()) line.add(run_log::divergence::difference, difference);
  shared_.run_log.write(line);
  log_line(LogLevel::info, "iteration %llu differs from the plan at call %u: %s",
           static_cast<unsigned long long>(matcher_.iteration()), matcher_.next(), plan.left_for.c_str());
}

void PlanFollower::interrupt(const char* what) noexcept {
  if (!following_) return;
  diverge(what);
  plans_[current_].left_at = 0;
  whole_ = false;  // what comes now is no call of an iteration
}

// What no plan rules.
void PlanFollower::count_loops(uint64_t word) noexcept {
  if (loops_.empty()) return;
  for (LoopCounter& loop : loops_) loop.add(word);
  tell_loops();
}

void PlanFollower::tell_loops() noexcept {
  uint64_t finished = 0;
  uint64_t unfinished = 0;
  for (const LoopCounter& loop : loops_) {
    finished += loop.finished();
    unfinished += loop.unfinished();
  }
  shared_.counters.loops_on_demand.store(finished, std::memory_order_relaxed);
  shared_.counters.loops_unfinished.store(unfinished, std::memory_order_relaxed);
}

bool PlanFollower::detect(uint64_t word) noexcept {
  if (!watching_ && period_ == 0) return false;
  if (period_ != 0 && ++calls_in_period_ == period_) on_demand_boundary();
  if (!watching_) return false;
  const bool repeats = detector_.add(word);
  // One call again and again is no iteration, and a line each would fill the log.
  const bool another = detector_.period() > 1 && period_ != detector_.period();
  if (repeats && counts_ && plans_.empty() && another) begin_to_count();
  return repeats && detector_.period() >= shortest_period_;
}

// Another loop than before repeats. What of it is over has not been counted yet.
void PlanFollower::begin_to_count() noexcept {
  const uint64_t over = detector_.repetitions();
  period_ = detector_.period();
  calls_in_period_ = 0;
  on_demand_began_ns_ = RunLogWriter::now_ns();
  next_iteration_ += over;
  shared_.counters.iterations_on_demand.fetch_add(over, std::memory_order_relaxed);
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::repeats::line);
  line.add(run_log::repeats::calls, period_).add(run_log::repeats::iterations, over);
  shared_.run_log.write(line);
}

void PlanFollower::on_demand_boundary() noexcept {
  calls_in_period_ = 0;
  const uint64_t now = RunLogWriter::now_ns();
  if (on_demand_began_ns_ != 0) {
    shared_.counters.iterations_on_demand.fetch_add(1, std::memory_order_relaxed);
    const uint64_t index = next_iteration_++;
    if (shared_.run_log.enabled()) {
      RunLogLine line(run_log::iteration::line);
      line.add(run_log::iteration::index, index)
          .add(run_log::iteration::mode, run_log::iteration::on_demand)
          .add(run_log::iteration::wall_ns, now - on_demand_began_ns_)
          .add(run_log::iteration::calls, period_);
      shared_.run_log.write(line);
    }
  }
  on_demand_began_ns_ = now;
}

}  // namespace reprise::replay

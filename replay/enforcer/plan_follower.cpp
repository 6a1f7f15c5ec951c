#include "replay/enforcer/plan_follower.h"

#include <algorithm>
#include <bit>

#include "preload/base/log.h"
#include "preload/base/readable.h"
#include "preload/trace/signature.h"
#include "replay/enforcer/difference.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kMostSkipped = 64;  // boundaries
constexpr uint64_t kMostPhases = 64;
// Rounds: what happens from one activation to the next.
constexpr uint64_t kRoundsBeforeHold = 8;  // and eight times as many before the second
constexpr uint64_t kRoundsHeld = 4;        // the detector needs three
constexpr uint64_t kMostHolds = 2;
constexpr uint64_t kFewIterations = 8;  // of plans, in a round

// Calls at which it looks as where the plan begins: the same call comes, and nothing is alive that was not alive then.
// A plan of five of the program's steps, which differ in the middle, has five.
std::vector<uint32_t> beginnings(const plan::Plan& plan) noexcept {
  using plan::CallKind;
  std::vector<uint32_t> found;
  int64_t alive = 0;
  for (uint32_t i = 0; i < plan.calls.size() && found.size() < kMostPhases; ++i) {
    const plan::Call& call = plan.calls[i];
    const plan::Call& first = plan.calls[0];
    if (alive == 0 && call.kind == first.kind && call.signature == first.signature) found.push_back(i);
    if (call.kind == CallKind::allocate || call.kind == CallKind::allocate_handover) ++alive;
    if (call.kind == CallKind::free || call.kind == CallKind::free_handover || call.kind == CallKind::late_free) {
      --alive;
    }
  }
  return found;
}

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
  plans_.back().beginnings = beginnings(plan_index->plan);
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
  return step(CallKind::op, command.signature, command.name, command.blind, command,
              [&](FollowedCall& step) { return matcher_.op(command, &step.match); });
}

FollowedCall PlanFollower::allocate(const AllocateCall& call) noexcept {
  return step(CallKind::allocate, trace::allocate_signature(call.origin, call.size), "an allocation", false, call,
              [&](FollowedCall& step) { return matcher_.allocate(call, &step.match, &step.address); });
}

FollowedCall PlanFollower::free(const FreeCall& call) noexcept {
  return step(CallKind::free, trace::free_signature(call.origin, call.size), "a free", false, call,
              [&](FollowedCall& step) { return matcher_.free(call, &step.match); });
}

template <typename Try, typename Call>
FollowedCall PlanFollower::step(CallKind kind, uint64_t signature, const char* got, bool blind, const Call& call,
                                Try match) noexcept {
  FollowedCall step;
  if (following_ && shared_.dispatcher_divergences.load(std::memory_order_acquire) != divergences_seen_) {
    // The dispatcher has ended the plan and logged why.
    end_plan();
    whole_ = false;
    if (matcher_.iteration() <= began_iteration_) {
      ++plans_[current_].early_failures;
      if (!shared_.refusal.get().empty()) refused();
      calls_in_period_ = matcher_.next();  // an iteration on demand that began with the plan
    } else {
      on_demand_began_ns_ = 0;
      calls_in_period_ = 0;
    }
  }
  if (following_) {
    step.planned = match(step);
    if (step.planned) {
      ++calls_;
      ++calls_in_all_;
      if (step.match.iteration >= next_iteration_) next_iteration_ = step.match.iteration + 1;
      return step;
    }
    diverge(got, difference(matcher_, call));
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
    try_to_begin(kind, signature, match, &step);
    if (step.planned) return step;
  }
  count_loops(word);
  step.ask_planner = detect(word);
  return step;
}

template <typename Try>
void PlanFollower::try_to_begin(CallKind kind, uint64_t signature, Try match, FollowedCall* step) noexcept {
  uint32_t tried = 0;
  for (uint32_t plan; (plan = choose(kind, signature, tried)) < plans_.size(); tried |= 1u << plan) {
    if (hold_now()) {
      step->holds = true;
      return;
    }
    // It repeats from somewhere in the iteration, and the plan begins at its start: what is mostly over counts.
    if (on_demand_began_ns_ != 0 && 2 * calls_in_period_ >= period_) on_demand_boundary();
    on_demand_began_ns_ = period_ != 0 ? RunLogWriter::now_ns() : 0;
    calls_in_period_ = 0;
    begin(plan);
    step->planned = match(*step);
    if (!step->planned) continue;
    step->activate = true;
    step->plan = plan;
    following_ = true;
    for (LoopCounter& loop : loops_) loop.start_over();
    plans_[plan].begun = true;
    ++activations_;
    in_use_ |= 1u << plan;
    return;
  }
}

// The live allocations are the plan's persistent ones, in order, and the call is the plan's first.
bool PlanFollower::begins_here(uint32_t plan, CallKind kind, uint64_t signature) noexcept {
  KnownPlan& known = plans_[plan];
  const PlanIndex& index = *known.index;
  if (index.plan.calls[0].kind != kind || index.plan.calls[0].signature != signature) return false;
  ++known.first_calls;
  known.alive_then = live_.size();
  known.difference = nullptr;
  if (shared_.plan_unusable[plan].load(std::memory_order_relaxed)) return false;
  // All persistent tensors are alive at the boundary, also where the first call is a free.
  if (live_.size() != index.persistent_count) return false;
  // They may lie where another plan has put them, but small ones there share places with those of this plan.
  size_t tensor = 0;
  for (const auto& [id, live] : live_) {
    const plan::Tensor& wanted = index.plan.tensors[tensor++];
    if (live.size != wanted.size) {
      known.difference = "they had other sizes than in the recording";
    } else if (index.ranges.contains(live.address) ||
               (wanted.chunk_count == 0 && shared_.arena.plan.contains(live.address))) {
      known.difference = "one of them lay where the plan needs room";
    }
    if (known.difference != nullptr) return false;
  }
  return true;
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
  return plans_[plan].early_failures >= plans_[plan].patience();
}

// Of the plans that may begin here and were not tried: the one that has failed least of late, the newest among equals,
// for it was made where the others did not do. No plan: a number that is none's.
uint32_t PlanFollower::choose(CallKind kind, uint64_t signature, uint32_t tried) noexcept {
  auto best = static_cast<uint32_t>(plans_.size());
  for (uint32_t i = 0; i < plans_.size(); ++i) {
    if ((tried >> i & 1) != 0 || !begins_here(i, kind, signature)) continue;
    KnownPlan& plan = plans_[i];
    if (tried == 0) plan.phase = (plan.phase + 1) % plan.beginnings.size();
    if (plan.skip_boundaries > 0) {
      if (tried == 0) --plan.skip_boundaries;
      continue;
    }
    if (plan.beginnings.size() > 1 && (plan.failed_phases >> plan.phase & 1) != 0) continue;
    if (best == plans_.size() || plans_[i].early_failures <= plans_[best].early_failures) best = i;
  }
  return best;
}

void PlanFollower::begin(uint32_t plan) noexcept {
  std::vector<CUdeviceptr> persistent;
  persistent.reserve(live_.size());
  for (const auto& [id, live] : live_) persistent.push_back(live.address);
  current_ = plan;
  matcher_.begin(plans_[plan].index, persistent, shared_.arena_all, next_iteration_);
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
  planned_iterations_ += matcher_.iteration() - began_iteration_;
  plans_[current_].ruled += matcher_.iteration() - began_iteration_;
  // Steps that have passed under the plan count as well: the one that it began with has been counted.
  KnownPlan& plan = plans_[current_];
  for (LoopCounter& loop : loops_) loop.start_over();
  loops_[plan.loop].left_plan_at(matcher_.next(), *plan.index);
  const auto at = matcher_.next() != 0 ? matcher_.next() : static_cast<uint32_t>(plan.index->plan.calls.size());
  const auto passed = std::lower_bound(plan.beginnings.begin(), plan.beginnings.end(), at) - plan.beginnings.begin();
  plan.phase = (plan.phase + static_cast<uint64_t>(passed) - 1) % plan.beginnings.size();
  open_handovers_ = matcher_.end();
}

// It never came in force, so it is no part of what repeats. What is called between is not recorded: tried at every
// boundary, the plan would keep the planner from seeing a loop of which one could be made that has room.
void PlanFollower::refused() noexcept {
  constexpr uint64_t kFewestSkipped = 2;  // as a power of two
  if (activations_ > 0) --activations_;
  KnownPlan& plan = plans_[current_];
  if (plan.early_failures < plan.patience()) return;
  const uint64_t power = kFewestSkipped + plan.early_failures - plan.patience();
  plan.skip_boundaries = power < 6 ? uint64_t{1} << power : kMostSkipped;
}

void PlanFollower::diverge(const char* got, const std::string& difference) noexcept {
  KnownPlan& plan = plans_[current_];
  const uint64_t began_at = uint64_t{1} << plan.phase;
  end_plan();
  const bool early = matcher_.iteration() == began_iteration_;
  plan.early_failures = early ? plan.early_failures + 1 : 0;
  plan.left_at = early && matcher_.next() != 0 ? calls_in_all_ : 0;
  plan.left_call = matcher_.next();
  plan.left_for = "expected " + matcher_.expected() + ", got " + got;
  if (!difference.empty()) plan.left_for += " (" + difference + ")";
  plan.failed_phases = early ? plan.failed_phases | began_at : 0;
  if (plan.early_failures >= plan.patience()) {
    plan.failed_phases = 0;
    plan.skip_boundaries =
        std::min<uint64_t>(uint64_t{1} << std::min<uint64_t>(plan.early_failures - plan.patience(), 6), kMostSkipped);
  }
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
  if (repeats && counts_ && plans_.empty() && period_ != detector_.period()) begin_to_count();
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

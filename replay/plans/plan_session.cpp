#include "replay/plans/plan_session.h"

#include <algorithm>
#include <cstdio>

#include "preload/base/causes.h"
#include "preload/base/readable.h"
#include "preload/base/runtime.h"
#include "preload/driver/resolve.h"
#include "preload/facts/store.h"
#include "preload/trace/identity.h"
#include "replay/plans/plan_words.h"

namespace reprise::replay {
namespace {

// A trace of more calls fills a disk, and what is not found in them is no iteration.
constexpr uint64_t kMostCallsRecorded = 10'000'000;

// Has one of the plans the same calls? One that never lasts may be of iterations whose tables led elsewhere, say, and
// one that cannot be used any more may rest on a fact that has been forgotten since: one more is welcome.
bool is_known(const Shared& shared, const PlanFollower& follower, uint32_t plans, const plan::Plan& plan) noexcept {
  uint32_t of_its_calls = 0;
  for (uint32_t i = 0; i < plans; ++i) {
    if (follower.known(i).better || follower.known(i).is_guess()) continue;
    const plan::Plan& known = follower.known(i).plan();
    if (calls_of(known) != calls_of(plan) || alive_at_start(known) != alive_at_start(plan)) continue;
    const bool of_use = !follower.known(i).never_lasts() && !shared.plan_unusable[i].load(std::memory_order_relaxed);
    if (of_use || ++of_its_calls == kMostAboutOneLoop) return true;
  }
  return false;
}

// Bytes, by what the program takes and holds so far.
uint64_t budget_now(const Shared& shared) noexcept {
  const uint64_t peak = shared.account.peak_beside_outside(shared.counters.peak_footprint_bytes.load());
  return shared.account.known(peak, shared.counters.outside_bytes.load());
}

// Would all that was ever alive at once be on the device, with what the program holds around us?
bool all_fits(const Shared& shared) noexcept {
  const Counters& counters = shared.counters;
  const uint64_t peak = shared.account.peak_beside_outside(counters.peak_footprint_bytes.load());
  const uint64_t chunks =
      chunk_limit(shared.account.rule(), shared.chunk_bytes, counters.outside_bytes.load(), peak, 0);
  return std::min(chunks * shared.chunk_bytes, counters.room_bytes.load()) >= counters.peak_in_chunks_bytes.load();
}

void make_ready_for(const PlanIndex& index, const Shared& shared, bool* told_audited) noexcept {
  if (plan::is_by_kernel(shared.safety) && !*told_audited && has_no_complete(index)) {
    tell_of_none_complete(shared.safety);
    *told_audited = true;
  }
  if (!index.repeats.empty()) identify_kernels();
}

// Where nothing is to be planned, the period that counts is that of all calls; unless it has not been seen for long.
bool must_repeat_exactly(const Config& config, const Shared& shared, const Repetition& repetition) noexcept {
  constexpr uint64_t kLong = 16;  // periods
  const Detector& seen = repetition.repeating();
  if (&seen == &repetition.detector()) return false;
  return config.audit || (all_fits(shared) && seen.repetitions() < kLong);
}

std::string path_of_planner(const Config& config) {
  if (config.planner != nullptr && *config.planner != '\0') return config.planner;
  const std::string own = own_path();
  return own.substr(0, own.find_last_of('/') + 1) + "../../bin/reprise";
}

// `number`: of the plan that is to be kept in a file; 0: the first one.
PlanRequest new_request(const Config& config, Shared& shared, uint32_t number) {
  PlanRequest request;
  request.planner = path_of_planner(config);
  request.trace = config.trace;
  if (config.keep) {
    request.plan = config.trace;
    if (number != 0) request.plan.append(".").append(std::to_string(number));
    request.plan.append(".plan");
  }
  request.policy = config.policy;
  // Facts that have led to a plan which cannot be used are evidence against the others: the next plan does without.
  if (!shared.facts_failed.load(std::memory_order_acquire)) request.facts = facts::folder_of_facts(config.facts);
  if (config.nvdisasm != nullptr) request.nvdisasm = config.nvdisasm;
  const uint64_t budget = request.budget_bytes = budget_now(shared);
  if (const uint64_t room = shared.counters.room_bytes.load(); room < budget) {
    request.budget_bytes = std::min(budget, room + shared.counters.outside_bytes.load());
    shared.account.room.tell_of_less_than(budget, shared.run_log);
  }
  request.limit_seconds = config.plan_limit;
  return request;
}

}  // namespace

PlanSession::PlanSession(const Config& config, Recorder* recorder, Shared* shared, PlanSession* before) noexcept
    : config_(config),
      recorder_(recorder),
      shared_(*shared),
      follower_(shared, before != nullptr ? before->follower_.repetition().take() : CountedLoops{}),
      planner_(shared->safety),
      recording_(recorder, shared),
      earlier_(config, shared, &follower_),
      why_(shared, before != nullptr ? &before->why_ : nullptr),
      is_first_(before == nullptr) {
  if (is_first_) return;
  told_audited_ = before->told_audited_;
  recording_.allow(false);
  if (config.plan == nullptr) phase_ = Phase::stopped;
}

void PlanSession::open(uint64_t fixed_budget) noexcept {
  if (is_first_) recording_.open();
  follower_.live().open(shared_.chunk_bytes, shared_.granularity);
  if (config_.plan != nullptr) return load_given(fixed_budget);
  follower_.repetition().watch(config_.audit || (recorder_ != nullptr && config_.trace != nullptr && is_first_));
  if (config_.audit) {
    phase_ = Phase::stopped;
  } else if (is_first_ && config_.keep_plans) {
    plan_count_ = earlier_.open(fixed_budget);
  }
}

void PlanSession::load_given(uint64_t fixed_budget) noexcept {
  asked_.plan_path = config_.plan;
  planner_.load(config_.plan, next_place(shared_, plan_count_));
  if (planner_.state() == PlanState::ready)
    warn_of_given(config_, shared_, planner_.answer().plan_index->plan, fixed_budget);
}

void PlanSession::close() noexcept {
  if (is_first_) say_why_unplanned();
  stop(false);
}

void PlanSession::after_step(const FollowedCall& step, uint64_t sequence) noexcept {
  recording_.follow(&follower_, sequence);
  if (earlier_.follow(step)) {
    make_ready_for(follower_.known(step.plan).index(), shared_, &told_audited_);
    why_.plan_taken();
    recording_.begin_anew_when_resumed();  // what the program does besides counts from when this plan has ended
  }
  if (step.holds) {
    say<Cause::loop_recorded_whole>();
    recording_.begin_stretch(&follower_, sequence, 0);
  }
  const bool may_ask = phase_ == Phase::watching && planner_.state() == PlanState::none && recorder_ != nullptr &&
                       config_.trace != nullptr;
  if (step.outgrown != nullptr && may_ask &&
      questions_.may_ask(step.outgrown->index().plan.iteration_hash, follower_.calls_seen())) {
    ask(step.outgrown);
  }
  look_at_planner(step.ask_planner, sequence);
}

void PlanSession::allocated(const AllocateCall& call, CUdeviceptr address) noexcept {
  Counters& counters = shared_.counters;
  LiveAllocations& live = follower_.live();
  live.add(call.allocation, {address, call.size, call.origin});
  shared_.account.set_footprint(live.footprint());
  counters.in_chunks_bytes.store(live.in_chunks(), std::memory_order_relaxed);
  counters.requested_bytes.store(live.bytes(), std::memory_order_relaxed);
  const auto raise = [](std::atomic<uint64_t>& most, uint64_t now) {
    if (now <= most.load(std::memory_order_relaxed)) return false;
    most.store(now, std::memory_order_relaxed);
    return true;
  };
  raise(counters.peak_requested_bytes, live.bytes());
  const bool more = raise(counters.peak_footprint_bytes, live.footprint());
  if (raise(counters.peak_in_chunks_bytes, live.in_chunks()) || more) grown();
}

void PlanSession::freed(uint64_t allocation) noexcept {
  LiveAllocations& live = follower_.live();
  live.remove(allocation);
  shared_.counters.requested_bytes.store(live.bytes(), std::memory_order_relaxed);
  shared_.account.set_footprint(live.footprint());
  shared_.counters.in_chunks_bytes.store(live.in_chunks(), std::memory_order_relaxed);
}

void PlanSession::look_at_planner(bool repeats, uint64_t sequence) noexcept {
  if (!is_first_ && config_.plan == nullptr) return;  // an answer would be about memory that is gone
  const PlanState state = planner_.state();
  if (state == PlanState::running) return;
  if (state != PlanState::none) return take_answer(state, sequence);
  if (recording_.calls() >= kMostCallsRecorded && phase_ != Phase::stopped && phase_ != Phase::left_out) {
    const std::string why = words<Cause::no_iteration_found>(recording_.calls());
    if (has_plans()) {
      say<Cause::planning_ended>(why);
    } else {
      say<Cause::on_demand>(why);
    }
    on_demand(run_log::on_demand::no_iteration, why);
    stop(false);
  }
  Repetition& repetition = follower_.repetition();
  const uint64_t loop = repeats ? repetition.repeating().loop() : 0;
  if (repeats && phase_ == Phase::left_out && questions_.is_another(loop, follower_.calls_seen())) {
    return plan_again(sequence);
  }
  if (repeats && must_repeat_exactly(config_, shared_, repetition)) return;
  if (repeats && config_.audit) repetition.watch(false);  // the period is known: iterations are counted from here on
  const bool may_ask = repeats && phase_ == Phase::watching && recorder_ != nullptr && config_.trace != nullptr;
  if (!may_ask) return;
  if (all_fits(shared_)) {
    say<Cause::everything_fits>();
    on_demand(run_log::on_demand::fits, phrase<Cause::everything_fits>());
    phase_ = Phase::fits;
    repetition.watch(false);
    if (config_.trace_is_private) recording_.allow(false);
    return;
  }
  if (!questions_.may_ask(loop, follower_.calls_seen())) return;
  ask(nullptr);
  if (config_.wait_for_plan) look_at_planner(false, sequence);
}

void PlanSession::take_answer(PlanState state, uint64_t sequence) noexcept {
  if (state == PlanState::ready) return take_plan(sequence);
  if (state == PlanState::impossible) {
    plan_impossible();
    return planner_.reset();
  }
  say<Cause::no_plan_yet>(planner_.answer().message);
  on_demand(run_log::on_demand::no_iteration, planner_.answer().message);
  why_.not_yet(planner_.answer().message);
  if (asked_.loosely) return planner_.reset();  // says nothing about what repeats call by call
  if (planner_.answer().is_early) questions_.answered_early();
  if (planner_.answer().is_part) questions_.answered_part(follower_.calls_seen());
  planner_.reset();
  no_plan_of_it();
}

void PlanSession::on_demand(const WhyUnplanned::Word& cause, const std::string& reason) noexcept {
  if (!has_plans()) why_.on_demand(cause, reason);
}

void PlanSession::say_why_unplanned() noexcept {
  const bool given = config_.plan != nullptr;
  why_.end(follower_, plan_count_, given);
  if (shared_.counters.iterations_planned.load() != 0 || has_plans()) return;
  if (planner_.state() == PlanState::running || planner_.state() == PlanState::ready) {
    return why_.end_asked(RunLogWriter::now_ns() - asked_.at_ns);
  }
  const bool recorded = given || (recorder_ != nullptr && config_.trace != nullptr);
  const bool looked_for = phase_ == Phase::watching || phase_ == Phase::fits;
  why_.end_unplanned(follower_.calls_seen(), recorded, looked_for);
}

// The stretch of calls that was asked about has no iteration, or one that has a plan. It may become one.
void PlanSession::no_plan_of_it() noexcept {
  follower_.repetition().detector().rejected(!has_plans());
  if (!questions_.answered_none(has_plans())) return;
  say<Cause::planning_rests>(kMostFruitless);
  leave_out_loop(kNoLoop);
}

void PlanSession::plan_impossible() noexcept {
  const uint64_t needed = planner_.answer().needed_bytes;
  const bool room = asked_.with_room == asked_.budget;
  if (needed != 0 && room && raise_to_plan(needed)) return;
  if (has_plans()) {
    say<Cause::loop_on_demand>(planner_.answer().message);
    if (needed == 0) return stop(false);
    return no_plan_of_it();
  }
  if (needed != 0 && !room) return no_room_for_plan(needed);
  bool is_new = false;
  if (needed != 0) {
    // Where one call needs more than the budget, that call says so, with the number that is enough.
    why_.too_little(run_log::on_demand::too_small, planner_.answer().message, needed);
  } else {
    is_new = why_.on_demand(run_log::on_demand::no_plan, planner_.answer().message);
  }
  if (is_new) {
    say<Cause::on_demand>(planner_.answer().message);
  } else {
    say_as_info<Cause::on_demand>(planner_.answer().message);
  }
  shared_.counters.least_budget_bytes.store(needed);
  leave_out_loop(questions_.last_loop());
  asked_.wanted = needed;
  grown();  // meanwhile, perhaps
}

// A percentage rises to what the smallest plan takes, as it does to what one call needs: that is the less memory in
// which the program runs well. false: there is none.
bool PlanSession::raise_to_plan(uint64_t needed) noexcept {
  Counters& counters = shared_.counters;
  if (config_.budget.fraction <= 0 || needed > shared_.account.peak_of_program()) return false;
  if (needed <= counters.raised_bytes.load()) return false;  // and it was no use
  say<Cause::budget_raised>(asked_.budget, needed, planner_.answer().needed_because);
  counters.raised_bytes.store(needed);
  asked_.wanted = needed;
  grown();
  return true;
}

// The budget is not what is too small, or not it alone: the device has less.
void PlanSession::no_room_for_plan(uint64_t needed) noexcept {
  const RoomFigures room = shared_.account.room.get();
  const bool budget_too = needed > asked_.budget;
  const std::string why = words<Cause::no_room_for_plan>(asked_.with_room, planner_.answer().needed_because, needed,
                                                         budget_too ? phrase<Cause::above_budget_too>() : "",
                                                         who_has_the_rest(room), how_to_get_room(room, needed));
  why_.too_little(run_log::on_demand::no_room, why, needed);
  say_as_info<Cause::on_demand>(why);
  if (budget_too) shared_.counters.least_budget_bytes.store(needed);
  leave_out_loop(questions_.last_loop());
}

void PlanSession::leave_out_loop(uint64_t loop) noexcept {
  questions_.leave_out(loop, follower_.calls_seen());
  stop(true);
  phase_ = Phase::left_out;
  if (config_.trace_is_private) recording_.allow(false);  // a trace that the user asked for may be planned by hand
  follower_.repetition().watch_for_others();
}

void PlanSession::plan_again(uint64_t sequence) noexcept {
  say<Cause::loop_recorded>();
  phase_ = Phase::watching;
  questions_.forget_loops();
  follower_.repetition().watch(true);
  recording_.allow(true);
  if (recording_.begin_with_next()) recording_.begin_stretch(&follower_, sequence, 0);
}

void PlanSession::stop(bool keep_recording) noexcept {
  phase_ = Phase::stopped;
  asked_.wanted = 0;
  follower_.repetition().watch(false);
  follower_.rounds().end_hold();
  if (!keep_recording || !recording_.may_record()) recording_.stop();
}

// More is alive at once than ever before: what did fit may fit no more, and a percentage is of more bytes, so that a
// plan may be possible by now.
void PlanSession::grown() noexcept {
  const bool enough = asked_.wanted != 0 && budget_now(shared_) > asked_.budget && budget_now(shared_) >= asked_.wanted;
  if (!enough && (phase_ != Phase::fits || all_fits(shared_))) return;
  if (enough) {
    asked_.wanted = 0;
    why_.forget();
    questions_.forget_loops();
    shared_.counters.least_budget_bytes.store(0);
  }
  if (phase_ == Phase::fits) {
    on_demand(run_log::on_demand::unfinished, phrase<Cause::held_all_until_more>());
  }
  phase_ = Phase::watching;
  recording_.allow(true);
  recording_.begin_with_next();
  follower_.repetition().watch(true);
  follower_.repetition().detector().restart(0);
}

// `outgrown`: a plan was left for sizes that are not its own, and one is wanted that holds them all.
void PlanSession::ask(const Growth* outgrown) noexcept {
  PlanRequest request = new_request(config_, shared_, has_plans() ? plan_count_ + 1 : 0);
  request.kept = earlier_.store();
  Detector& detector = follower_.repetition().detector();
  asked_.loosely = outgrown != nullptr || &follower_.repetition().repeating() != &detector;
  if (!asked_.loosely) detector.asked();
  asked_.instead_of.reset();
  if (outgrown != nullptr) {
    request.sizes = outgrown->sizes_by_allocation();
    if (!plan::sizes_vary(outgrown->index().plan)) asked_.instead_of = outgrown->plan();
  } else {
    request.from_call = recording_.from_call();
    // During a hold shorter loops have plans.
    request.least_calls = follower_.rounds().holding() ? detector.period() - detector.period() / 8 : 0;
    request.least_share = questions_.least_share(has_plans(), follower_.calls_seen());
    request.best_start = questions_.best_start(has_plans());
    request.first = !config_.wait_for_plan;
  }
  asked_.budget = budget_now(shared_);
  asked_.with_room = request.budget_bytes;
  asked_.plan.reset();
  asked_.plan_path = request.plan;
  recorder_->info("memory.held_bytes", shared_.counters.outside_bytes.load());
  recorder_->info("memory.peak_bytes", shared_.account.peak_of_program());
  collect_activity(recorder_, shared_.common);
  asked_.at_ns = RunLogWriter::now_ns();
  planner_.ask(request, recorder_, next_place(shared_, plan_count_));
  if (config_.wait_for_plan) planner_.wait();
}

void PlanSession::take_plan(uint64_t sequence) noexcept {
  const PlannerAnswer& answer = planner_.answer();
  const PlanIndex* const index = answer.plan_index;
  const bool is_better = answer.is_better;  // of the loop that has a plan since a moment
  const uint64_t recording_ns = answer.recording_ns, planner_ns = answer.planner_ns;
  planner_.reset();
  if (is_better && (!asked_.plan || plan_count_ == kMostPlans)) return;
  if (!is_better && is_known(shared_, follower_, plan_count_, index->plan)) {
    say<Cause::loop_has_plan>();
    return no_plan_of_it();
  }
  write_plan(shared_.run_log, *index,
             {plan_count_, asked_.plan_path, recording_ns, planner_ns, is_better ? asked_.plan : asked_.instead_of});
  make_ready_for(*index, shared_, &told_audited_);
  if (is_better) {
    shared_.plans[plan_count_++].store(index, std::memory_order_release);
    return follower_.use(index, asked_.plan);
  }
  asked_.plan = plan_count_;
  shared_.plans[plan_count_++].store(index, std::memory_order_release);
  questions_.answered_plan();
  why_.plan_taken();
  shared_.counters.least_budget_bytes.store(0);
  follower_.use(index, asked_.instead_of);
  if (config_.plan != nullptr || plan_count_ + 1 >= kMostPlans) return stop(false);
  // What the program does besides counts from when this plan has ended; should it never begin, from now on.
  recording_.begin_stretch(&follower_, sequence, 2 * index->plan.calls.size());
  recording_.begin_anew_when_resumed();
}

}  // namespace reprise::replay

// What the enforcer plans: when it asks the planner, what it records for that, and which plans it keeps (decision
// 0028).
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/plan/enforced.h"
#include "analyzer/plan/least_share.h"
#include "preload/base/log.h"
#include "preload/base/readable.h"
#include "preload/base/runtime.h"
#include "preload/driver/resolve.h"
#include "preload/facts/store.h"
#include "preload/trace/identity.h"
#include "preload/trace/signature.h"
#include "replay/enforcer/enforcer.h"
#include "replay/issue/held_memory.h"

namespace reprise::replay {
namespace {

using Alive = std::pair<uint64_t, PlanFollower::LiveAllocation>;

// A trace of more calls fills a disk, and what is not found in them is no iteration.
constexpr uint64_t kMostCallsRecorded = 10'000'000;
// Once there is a plan: questions in a row that give no other one, before there are none for a while.
constexpr uint32_t kMostFruitless = 8;
constexpr uint64_t kNoLoop = 1;  // no loop has this hash
// Of these, questions about the same loop, until the program has made twice the calls: a longer recording may say more.
constexpr uint32_t kMostAboutOneLoop = 3;
// The first plan is of what covers this much of the recorded device time, in % ...
constexpr uint32_t kLeastShareFirst = 50;
// ... until so many times the calls have been recorded by which there was only less. Then, and for the plans behind the
// first, of whatever is an iteration: the same kernel a few times in a row is no loop of the program.
constexpr uint64_t kPatience = 8;
// What begins where much is alive is planned when it has been recorded so many times more and still does.
constexpr uint32_t kMostEarlyAnswers = 3;
// ns; a planner that was asked so shortly before the end had no time.
constexpr uint64_t kLastMoment = 500'000'000;
// Of the plans' part of the arena, what is kept for their small tensors.
constexpr uint64_t kSlabShare = 16;

// A loop has the same calls wherever it is entered.
uint64_t calls_of(const plan::Plan& plan) noexcept {
  uint64_t sum = 0;
  for (const plan::Call& call : plan.calls) {
    if (!call.inserted && call.recompute_of == plan::kNone) sum += trace::hash_mix(1, call.signature);
  }
  return sum;
}

// ... and what is alive when it begins tells two of them apart that make the same calls.
uint64_t alive_at_start(const plan::Plan& plan) noexcept {
  uint64_t sum = 0;
  for (const plan::Tensor& tensor : plan.tensors) {
    if (tensor.allocate_call == plan::kNone) sum += trace::hash_mix(2, tensor.size);
  }
  return sum;
}

// What audited safety gains by the plan; where that is nothing, it is told once what to do.
void add_audited(const PlanIndex& index, RunLogLine<run_log::plan::Tag>* line) {
  uint64_t launches = 0;
  uint64_t audited = 0;
  for (const plan::Call& call : index.plan.calls) {
    if (call.op == trace::OpKind::launch && call.kind == plan::CallKind::op) ++launches;
    if (call.audited != 0) ++audited;
  }
  const auto aliased = static_cast<uint64_t>(std::count(index.aliased.begin(), index.aliased.end(), true));
  line->add(run_log::plan::launches, launches)
      .add(run_log::plan::audited_launches, audited)
      .add(run_log::plan::aliased_tensors, aliased);
}

// Why there is no plan, where budget or room are too small for one: it takes `least_bytes`.
void write_too_little(RunLogWriter& log, const run_log::Word<run_log::on_demand::Tag>& cause, const std::string& reason,
                      uint64_t least_bytes) noexcept {
  if (!log.enabled()) return;
  RunLogLine line(run_log::on_demand::line);
  line.add(run_log::on_demand::cause, cause)
      .add(run_log::on_demand::reason, reason)
      .add(run_log::on_demand::least_bytes, least_bytes);
  log.write(line);
}

// Has each of these been handed over to one of those, which lies where it was?
bool same_places(const std::vector<Alive>& before, const std::vector<Alive>& after) noexcept {
  const auto places = [](const std::vector<Alive>& all) {
    std::vector<std::pair<CUdeviceptr, uint64_t>> of;
    of.reserve(all.size());
    for (const auto& [id, allocation] : all) of.emplace_back(allocation.address, allocation.size);
    std::sort(of.begin(), of.end());
    return of;
  };
  return places(before) == places(after);
}

}  // namespace

// For each call of the program, when the follower has said what it is and before it is appended. Under the submission
// lock; cheap while nothing changes.
void Enforcer::after_step(const FollowedCall& step, uint64_t sequence) noexcept {
  follow_recording(sequence);
  if (step.holds) {
    log_line(LogLevel::info, "the plans are of parts of what repeats: it is recorded in one piece");
    begin_stretch(sequence, 0);
  }
  look_at_planner(step.ask_planner, sequence);
}

void Enforcer::look_at_planner(bool ask, uint64_t sequence) noexcept {
  if (reopened_ && config_.plan == nullptr) return;  // an answer would be about memory that is gone
  switch (planner_.state()) {
    case PlanState::none:
      break;
    case PlanState::running:
      return;
    case PlanState::ready:
      take_plan(sequence);
      return;
    case PlanState::not_yet:
      log_line(LogLevel::info, "no plan yet: %s", planner_.message().c_str());
      say_on_demand(run_log::on_demand::no_iteration, planner_.message());
      not_yet_because_ = planner_.message();
      not_yet_at_ = shared_.counters.iterations_on_demand.load();
      if (planner_.is_early()) ++early_answers_;
      if (planner_.is_part() && part_since_ == 0) part_since_ = follower_.calls_seen();
      planner_.reset();
      no_plan_of_it();
      return;
    case PlanState::impossible:
      plan_impossible();
      planner_.reset();
      return;
  }
  if (recorded_calls_ >= kMostCallsRecorded && !no_more_plans_) {
    log_line(plan_count_ == 0 ? LogLevel::warn : LogLevel::info, "%s: no iteration was found in %llu calls",
             plan_count_ == 0 ? "memory is managed on demand" : "nothing more is planned",
             static_cast<unsigned long long>(recorded_calls_));
    say_on_demand(run_log::on_demand::no_iteration,
                  "no iteration was found in " + std::to_string(recorded_calls_) + " calls");
    stop_planning(false);
  }
  if (ask && no_more_plans_ && is_another_loop()) return plan_again(sequence);
  if (ask && config_.audit) follower_.watch(false);  // the period is known: iterations are counted from here on
  if (!ask || no_more_plans_ || recorder_ == nullptr || config_.trace == nullptr) return;
  if (fits()) {
    log_line(LogLevel::info, "the budget holds everything: nothing moves, and nothing is planned");
    say_on_demand(run_log::on_demand::fits, "the budget holds everything: nothing moves, and nothing is planned");
    fitting_ = true;
    follower_.watch(false);
    if (config_.trace_is_private) may_record_ = false;
    return;
  }
  const uint64_t loop = follower_.loop();
  if (follower_.calls_seen() >= ask_all_again_at_) {
    loops_asked_about_.clear();
    ask_all_again_at_ = 2 * follower_.calls_seen();
  }
  if (std::count(loops_asked_about_.begin(), loops_asked_about_.end(), loop) >= kMostAboutOneLoop) return;
  loops_asked_about_.push_back(loop);
  ask_planner();
  if (!config_.wait_for_plan) return;
  planner_.wait();
  look_at_planner(false, sequence);
}

// For the report; the same reason once.
void Enforcer::say_on_demand(const run_log::Word<run_log::on_demand::Tag>& cause, const std::string& reason) noexcept {
  if (plan_count_ > 0 || !unplanned_because_.empty() || reason == on_demand_because_) return;
  on_demand_because_ = reason;
  shared_.run_log.write_on_demand(cause, reason);
}

// Why this one of the plans ruled no iteration, if it did not.
void Enforcer::say_why_idle(uint32_t plan) noexcept {
  if (follower_.has_ruled(plan)) return;
  const std::string too_late = config_.plan == nullptr ? follower_.why_too_late(plan) : std::string();
  if (!too_late.empty()) return shared_.run_log.write_on_demand(run_log::on_demand::unfinished, too_late, plan);
  const std::string never = follower_.why_never_begun(plan);
  if (!never.empty()) return shared_.run_log.write_on_demand(run_log::on_demand::never_began, never, plan);
  if (shared_.counters.iterations_planned.load() == 0) return;  // it is told by the lines of where it was left
  const std::string left = follower_.where_left(plan);
  if (!left.empty()) shared_.run_log.write_on_demand(run_log::on_demand::left, left, plan);
}

// At the end of a run: of each plan that ruled no iteration, and of a run without any, what has not been said where it
// was decided.
void Enforcer::say_why_unplanned() noexcept {
  for (uint32_t plan = 0; plan < plan_count_; ++plan) say_why_idle(plan);
  if (shared_.counters.iterations_planned.load() != 0) return;
  if (config_.plan != nullptr && plan_count_ > 0) {
    plan_idle_because_ = why_idle();
    const bool lacked_room = !shared_.refusal.get().empty() && shared_.refused_for_room.load(std::memory_order_acquire);
    if (lacked_room) how_the_plan_gets_room_ = how_the_plan_gets_room();
  }
  if (plan_count_ > 0) return;
  if (planner_.state() == PlanState::running || planner_.state() == PlanState::ready) {
    const uint64_t waited = RunLogWriter::now_ns() - asked_at_ns_;
    char why[128];
    std::snprintf(why, sizeof why,
                  "the program ended before a plan was made of what it repeats, %.1f s after the planner was asked",
                  static_cast<double>(waited) / 1e9);
    // A question of the last moment says nothing of why there was no plan before; the answer to the one before does.
    const bool answered = waited < kLastMoment && !not_yet_because_.empty();
    say_on_demand(run_log::on_demand::unfinished,
                  answered ? why + (" once more; before, it said: " + not_yet_because_) : why);
  } else if (config_.plan == nullptr && (recorder_ == nullptr || config_.trace == nullptr)) {
    say_on_demand(run_log::on_demand::not_recorded, "nothing was recorded that a plan could be made of");
  } else if (!no_more_plans_ && on_demand_because_ == not_yet_because_ && !not_yet_because_.empty() &&
             shared_.counters.iterations_on_demand.load() > not_yet_at_) {
    say_on_demand(run_log::on_demand::unfinished,
                  "the program ended before enough of it was recorded for a plan: when it was last asked, the planner "
                  "said: " +
                      not_yet_because_);
  } else if (on_demand_because_.empty()) {
    say_on_demand(run_log::on_demand::no_repetition, "the program ended before its calls repeated: it made " +
                                                         std::to_string(follower_.calls_seen()) +
                                                         " that work on the device or its memory");
  }
}

// Why the plan that the user gave ruled no iteration.
std::string Enforcer::why_idle() const noexcept {
  std::string why = shared_.refusal.get();
  if (why.empty()) why = follower_.why_never_begun(0);
  if (why.empty()) why = follower_.where_left(0);
  return why.empty() ? "the program ended within its first iteration" : why;
}

// A budget that the device cannot give is not the one to make larger.
std::string Enforcer::how_the_plan_gets_room() const noexcept {
  const plan::Plan& plan = shared_.plans[0].load(std::memory_order_relaxed)->plan;
  const RoomFigures room = shared_.room.get();
  const uint64_t budget = known_budget(budget_of(shared_), peak_beside_outside(shared_, peak_footprint_),
                                       shared_.counters.outside_bytes.load());
  if (room.total == 0 || room.room >= budget) {
    const std::string none = plan::why_no_plan_fits(plan, budget);
    return none.empty() ? "give it a larger budget, or make a plan for this one" : none;
  }
  return how_to_get_room(room, plan.budget_bytes) +
         (room.room >= plan.minimum_bytes ? ", or make a plan for " + readable_bytes(room.room) : "");
}

// The stretch of calls that was asked about has no iteration, or one that has a plan. It may become one; and while
// there is no plan at all, that is all that matters.
void Enforcer::no_plan_of_it() noexcept {
  follower_.planner_said_no(plan_count_ == 0);
  if (plan_count_ == 0) {
    loops_asked_about_.clear();
  } else if (++fruitless_ == kMostFruitless) {
    log_line(LogLevel::info, "nothing more is planned for now: %u questions in a row gave no new plan", kMostFruitless);
    fruitless_ = 0;
    leave_out_loop(kNoLoop);
  }
}

void Enforcer::plan_impossible() noexcept {
  const uint64_t needed = planner_.needed_bytes();
  const bool room = asked_with_room_ == asked_with_budget_;
  if (needed != 0 && room && raise_to_plan(needed)) return;
  if (plan_count_ > 0) {
    log_line(LogLevel::info, "a loop is managed on demand: %s", planner_.message().c_str());
    if (needed == 0) return stop_planning(false);
    return no_plan_of_it();
  }
  if (needed != 0 && !room) return no_room_for_plan(needed);
  if (needed != 0) {
    // Where one call needs more than the budget, that call says so, with the number that is enough.
    unplanned_because_ = on_demand_because_ = planner_.message();
    write_too_little(shared_.run_log, run_log::on_demand::too_small, unplanned_because_, needed);
  } else {
    say_on_demand(run_log::on_demand::no_plan, planner_.message());
  }
  log_line(needed != 0 ? LogLevel::info : LogLevel::warn, "memory is managed on demand: %s",
           planner_.message().c_str());
  shared_.counters.least_budget_bytes.store(needed);
  leave_out_loop(last_loop());
  wanted_ = needed;
  grown();  // meanwhile, perhaps
}

// A percentage rises to what the smallest plan takes, as it does to what one call needs: that is the less memory in
// which the program runs well. false: there is none.
bool Enforcer::raise_to_plan(uint64_t needed) noexcept {
  Counters& counters = shared_.counters;
  if (config_.budget.fraction <= 0 || needed > peak_of_program(shared_)) return false;
  if (needed <= counters.raised_bytes.load()) return false;  // and it was no use
  log_line(LogLevel::info, "the budget of %s is raised to %s: %s", readable_bytes(asked_with_budget_).c_str(),
           readable_bytes(needed).c_str(), planner_.needed_because().c_str());
  counters.raised_bytes.store(needed);
  wanted_ = needed;
  grown();
  return true;
}

// The budget is not what is too small, or not it alone: the device has less.
void Enforcer::no_room_for_plan(uint64_t needed) noexcept {
  const RoomFigures room = shared_.room.get();
  const bool budget_too = needed > asked_with_budget_;
  char why[1024];
  std::snprintf(why, sizeof why,
                "no plan fits into the %s that the device has room for: %s, so at least %s are needed%s; %s; %s",
                readable_bytes(asked_with_room_).c_str(), planner_.needed_because().c_str(),
                readable_bytes(needed).c_str(), budget_too ? ", more than the budget, too" : "",
                who_has_the_rest(room).c_str(), how_to_get_room(room, needed).c_str());
  unplanned_because_ = why;
  write_too_little(shared_.run_log, run_log::on_demand::no_room, unplanned_because_, needed);
  on_demand_because_ = unplanned_because_;
  log_line(LogLevel::info, "memory is managed on demand: %s", unplanned_because_.c_str());
  if (budget_too) shared_.counters.least_budget_bytes.store(needed);
  leave_out_loop(last_loop());
}

uint64_t Enforcer::last_loop() const noexcept { return loops_asked_about_.empty() ? 0 : loops_asked_about_.back(); }

// Nothing is planned of a loop that is too large; one that comes behind it may fit. It is looked for when the program
// has made twice the calls, so that a loop which looks like another one now and then costs few questions.
void Enforcer::leave_out_loop(uint64_t loop) noexcept {
  left_out_loop_ = loop;
  look_again_at_ = 2 * follower_.calls_seen();
  stop_planning(true);
  if (config_.trace_is_private) may_record_ = false;  // a trace that the user asked for may be planned by hand
  follower_.watch_for_others();
}

bool Enforcer::is_another_loop() const noexcept {
  return left_out_loop_ != 0 && follower_.calls_seen() >= look_again_at_ && follower_.loop() != left_out_loop_;
}

void Enforcer::plan_again(uint64_t sequence) noexcept {
  log_line(LogLevel::info, "a loop repeats that may be planned: it is recorded");
  left_out_loop_ = 0;
  no_more_plans_ = false;
  may_record_ = true;
  loops_asked_about_.clear();
  follower_.watch(true);
  new_stretch_ = !records_;
  if (records_) begin_stretch(sequence, 0);
}

void Enforcer::stop_planning(bool keep_recording) noexcept {
  no_more_plans_ = true;
  wanted_ = 0;
  fitting_ = false;
  may_record_ = may_record_ && keep_recording;
  follower_.watch(false);
  follower_.end_hold();
  if (may_record_) return;
  records_ = false;
  shared_.recording.store(false, std::memory_order_relaxed);
  if (recorder_ != nullptr) recorder_->pause();
}

// Would all that was ever alive at once be on the device, with what the program holds around us?
bool Enforcer::fits() const noexcept {
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  const uint64_t chunks =
      chunk_limit(budget_of(shared_), shared_.chunk_bytes, outside, peak_beside_outside(shared_, peak_footprint_), 0);
  return std::min(chunks * shared_.chunk_bytes, shared_.counters.room_bytes.load()) >= peak_in_chunks_;
}

// Is the budget now what the planner asked for when it had less?
bool Enforcer::has_what_was_wanted() const noexcept {
  if (wanted_ == 0) return false;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  const uint64_t budget = known_budget(budget_of(shared_), peak_beside_outside(shared_, peak_footprint_), outside);
  return budget > asked_with_budget_ && budget >= wanted_;
}

// More is alive at once than ever before: what did fit may fit no more, and a percentage is of more bytes, so that a
// plan may be possible by now.
void Enforcer::grown() noexcept {
  const bool enough = has_what_was_wanted();
  if (!enough && (!fitting_ || fits())) return;
  if (enough) {
    wanted_ = 0;
    no_more_plans_ = false;
    unplanned_because_.clear();
    on_demand_because_.clear();
    loops_asked_about_.clear();
    shared_.counters.least_budget_bytes.store(0);
  }
  if (fitting_) {
    say_on_demand(
        run_log::on_demand::unfinished,
        "the budget held everything until the program took more at once, and it ended before that was planned");
  }
  fitting_ = false;
  may_record_ = true;
  new_stretch_ = !records_;
  follower_.watch(true);
  follower_.watch_anew(0);
}

// Behind the addresses of the plans before: tensors that one of them has allocated may live on under another.
PlanPlace Enforcer::next_place() const noexcept {
  const Zone& zone = shared_.arena.plan;
  uint64_t at = zone.bytes / kSlabShare / shared_.chunk_bytes * shared_.chunk_bytes;
  if (plan_count_ > 0) {
    const Zone& last = shared_.plans[plan_count_ - 1].load(std::memory_order_relaxed)->ranges;
    at = last.base + last.bytes - zone.base;
  }
  return {zone, at, shared_.chunk_bytes};
}

// What repeats first may be a small part of what the program repeats: the batches of an evaluation, where each step
// differs from the one before it, and only steps and evaluation together repeat. A plan of the part would keep the
// whole from being found: it begins wherever its first calls come, and what it rules is not recorded.
bool Enforcer::only_half() const noexcept {
  return plan_count_ == 0 && (part_since_ == 0 || follower_.calls_seen() < kPatience * part_since_);
}

void Enforcer::ask_planner() noexcept {
  PlanRequest request;
  request.planner = config_.planner != nullptr ? config_.planner : std::string();
  if (request.planner.empty()) {
    const std::string own = own_path();
    request.planner = own.substr(0, own.find_last_of('/') + 1) + "../../bin/reprise";
  }
  request.trace = config_.trace;
  if (config_.keep) {
    request.plan = config_.trace;
    if (plan_count_ > 0) request.plan.append(".").append(std::to_string(plan_count_ + 1));
    request.plan.append(".plan");
  }
  request.policy = config_.policy;
  // Facts that have led to a plan which cannot be used are evidence against the others: the next plan does without.
  if (!shared_.facts_failed.load(std::memory_order_acquire)) request.facts = facts::folder_of_facts(config_.facts);
  const uint64_t outside = shared_.counters.outside_bytes.load();
  request.budget_bytes = known_budget(budget_of(shared_), peak_beside_outside(shared_, peak_footprint_), outside);
  asked_with_budget_ = request.budget_bytes;
  if (const uint64_t room = shared_.counters.room_bytes.load(); room < request.budget_bytes) {
    request.budget_bytes = std::min(request.budget_bytes, room + outside);
    shared_.room.tell_of_less_than(asked_with_budget_, shared_.run_log);
  }
  asked_with_room_ = request.budget_bytes;
  follower_.planner_asked();
  request.from_call = from_call_;
  request.least_calls = follower_.least_calls();
  request.least_share = only_half() ? kLeastShareFirst : plan::kLeastShare;
  request.best_start = plan_count_ == 0 && early_answers_ < kMostEarlyAnswers;
  request.limit_seconds = config_.plan_limit;
  plan_path_ = request.plan;
  recorder_->info("memory.held_bytes", shared_.counters.outside_bytes.load(std::memory_order_relaxed));
  recorder_->info("memory.peak_bytes", peak_of_program(shared_));
  collect_activity();
  asked_at_ns_ = RunLogWriter::now_ns();
  planner_.ask(request, recorder_, next_place());
}

// A plan that never lasts may be of iterations whose tables led elsewhere, say, and one that cannot be used any more
// may rest on a fact that has been forgotten since: one more of the same calls is welcome.
bool Enforcer::is_known(const plan::Plan& plan) const noexcept {
  uint32_t of_its_calls = 0;
  for (uint32_t i = 0; i < plan_count_; ++i) {
    const plan::Plan& known = shared_.plans[i].load(std::memory_order_relaxed)->plan;
    if (calls_of(known) != calls_of(plan) || alive_at_start(known) != alive_at_start(plan)) continue;
    const bool of_use = !follower_.never_lasts(i) && !shared_.plan_unusable[i].load(std::memory_order_relaxed);
    if (of_use || ++of_its_calls == kMostAboutOneLoop) return true;
  }
  return false;
}

std::string identity_text(uint64_t hash) noexcept {
  char text[17];
  trace::format_identity(hash, text);
  return text;
}

void Enforcer::take_plan(uint64_t sequence) noexcept {
  const PlanIndex* const plan_index = planner_.plan_index();
  planner_.reset();
  const plan::Plan& plan = plan_index->plan;
  if (is_known(plan)) {
    log_line(LogLevel::info, "the loop that was found has a plan already");
    return no_plan_of_it();
  }
  RunLogLine line(run_log::plan::line);
  line.add(run_log::plan::index, uint64_t{plan_count_})
      .add(run_log::plan::path, plan_path_)
      .add(run_log::plan::iteration_hash, identity_text(plan.iteration_hash))
      .add(run_log::plan::recording_ns, planner_.recording_ns())
      .add(run_log::plan::planner_ns, planner_.planner_ns())
      .add(run_log::plan::calls, uint64_t{words_of(*plan_index).size()})
      .add(run_log::plan::policy, plan.policy)
      .add(run_log::plan::chunk_count, plan.chunk_count)
      .add(run_log::plan::budget_bytes, plan.budget_bytes)
      .add(run_log::plan::reserved_bytes, plan.reserved_bytes)
      .add(run_log::plan::predicted_ns, plan.predicted_ns)
      .add(run_log::plan::compute_ns, plan.compute_ns)
      .add(run_log::plan::offload_bytes, plan.offload_bytes)
      .add(run_log::plan::reload_bytes, plan.reload_bytes);
  add_audited(*plan_index, &line);
  shared_.run_log.write(line);
  log_line(LogLevel::info, "plan %u: %zu calls, %s on the device, %s out and %s back in an iteration of %.1f ms",
           plan_count_ + 1, words_of(*plan_index).size(),
           readable_bytes(plan.chunk_count * plan.chunk_bytes + plan.reserved_bytes).c_str(),
           readable_bytes(plan.offload_bytes).c_str(), readable_bytes(plan.reload_bytes).c_str(),
           static_cast<double>(plan.predicted_ns) / 1e6);
  tell_audited(plan);
  if (!plan_index->repeats.empty()) identify_kernels();
  shared_.plans[plan_count_++].store(plan_index, std::memory_order_release);
  ++plans_taken_;
  fruitless_ = 0;
  unplanned_because_.clear();
  shared_.counters.least_budget_bytes.store(0);
  loops_asked_about_.clear();  // the plan may be of what came before the loop that was asked about
  follower_.use(plan_index);
  if (config_.plan != nullptr || plan_count_ == kMostPlans) return stop_planning(false);
  // What the program does besides counts from when this plan has ended; should it never begin, from now on.
  begin_stretch(sequence, 2 * plan.calls.size());
  new_stretch_ = true;
}

// Audited safety without audited kernels is strict.
void Enforcer::tell_audited(const plan::Plan& plan) noexcept {
  const auto audited = [](const plan::Call& call) { return call.audited != 0; };
  if (shared_.safety != plan::Safety::audited || told_audited_) return;
  if (std::any_of(plan.calls.begin(), plan.calls.end(), audited)) return;
  told_audited_ = true;
  log_line(
      LogLevel::warn,
      "--safety audited: no launch of the plan is of an audited kernel, so all is as with strict; `reprise audit -- "
      "PROGRAM` audits them");
}

// The next plan is for what is called from here on; the planner is not asked for `quiet` calls.
void Enforcer::begin_stretch(uint64_t sequence, uint64_t quiet) noexcept {
  new_stretch_ = false;
  from_call_ = sequence;
  follower_.watch_anew(quiet);
}

// Calls are recorded while no plan is followed.
void Enforcer::follow_recording(uint64_t sequence) noexcept {
  const bool records = may_record_ && !follower_.following();
  if (records && records_) ++recorded_calls_;
  if (records == records_ || recorder_ == nullptr) return;
  records_ = records;
  if (records) return resume_recording(sequence);
  paused_after_ = sequence - 1;
  paused_for_plan_ = follower_.following();
  follower_.take_whole();
  alive_at_pause_.assign(follower_.live().begin(), follower_.live().end());
  shared_.recording.store(false, std::memory_order_relaxed);
  recorder_->pause();
}

// What was freed and allocated meanwhile is recorded as of now.
void Enforcer::resume_recording(uint64_t sequence) noexcept {
  std::vector<Alive> freed;
  std::vector<Alive> allocated;
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  const auto& live = follower_.live();
  std::set_difference(alive_at_pause_.begin(), alive_at_pause_.end(), live.begin(), live.end(),
                      std::back_inserter(freed), earlier);
  std::set_difference(live.begin(), live.end(), alive_at_pause_.begin(), alive_at_pause_.end(),
                      std::back_inserter(allocated), earlier);
  const bool seam = follower_.take_whole() && paused_for_plan_ && same_places(freed, allocated);
  recorder_->resume(paused_after_, sequence, seam);
  for (const auto& [id, allocation] : freed) {
    FreeCall call{};
    call.allocation = id;
    call.origin = allocation.origin;
    recorder_->freed(call, sequence, trace::kCaughtUp);
  }
  for (const auto& [id, allocation] : allocated) {
    AllocateCall call{};
    call.size = allocation.size;
    call.origin = allocation.origin;
    call.device = shared_.device;
    recorder_->allocated(id, call, allocation.address, sequence, 0, trace::kCaughtUp);
  }
  ActivitySource* const activity = shared_.activity.load();
  if (activity != nullptr && !activity->running()) activity->start();
  shared_.recording.store(activity != nullptr, std::memory_order_relaxed);
  if (new_stretch_) begin_stretch(sequence, 0);
}

}  // namespace reprise::replay

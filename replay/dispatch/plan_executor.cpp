#include "replay/dispatch/plan_executor.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "preload/base/causes.h"

namespace reprise::replay {
namespace {

// Activations that fail in a row before the plan is not tried again. Room may come: a percentage budget grows until the
// program's peak is reached, and small tensors that an iteration has left in more chunks than the plan knows of come
// together again in some later ones.
constexpr int kPatience = 3;
constexpr int kPatienceForRoom = 16;

bool touches_host(const LogEntry& entry) noexcept {
  const Command& command = entry.command;
  if ((command.flags & trace::kOpHostVisible) != 0 || command.host_destination != nullptr) return true;
  return command.host_source != nullptr && !entry.staged;
}

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) noexcept {
  const auto first = reinterpret_cast<uint64_t>(a);
  const auto second = reinterpret_cast<uint64_t>(b);
  return a != nullptr && b != nullptr && first < second + b_bytes && second < first + a_bytes;
}

// Do two ops touch the same host bytes, one of them writing? Kernels that write host memory say not where.
bool host_conflict(const Command& a, const Command& b) noexcept {
  const auto unknown = [](const Command& command) {
    return (command.flags & trace::kOpHostVisible) != 0 && command.host_destination == nullptr;
  };
  if (unknown(a) || unknown(b)) return true;
  return overlap(a.host_destination, a.size, b.host_destination, b.size) ||
         overlap(a.host_destination, a.size, b.host_source, b.size) ||
         overlap(a.host_source, a.size, b.host_destination, b.size);
}

void nap(long nanoseconds) noexcept {
  const timespec time{0, nanoseconds};
  nanosleep(&time, nullptr);
}

// The stopwatch may have stopped the source of device times that the recording wants again.
void resume_recording(Common& common) noexcept {
  ActivitySource* const activity = common.activity.load(std::memory_order_acquire);
  if (activity != nullptr && common.recording.load(std::memory_order_relaxed) && !activity->running()) {
    activity->start();
  }
}

// The program goes on without the plan, and every reader of the run is told why.
void refuse(Shared& shared, uint32_t plan, const std::string& why, bool short_of_memory, bool for_good) noexcept {
  if (short_of_memory) {
    const Counters& counters = shared.counters;
    shared.account.room.tell_of_less_than(
        counters.budget_chunks.load() * shared.chunk_bytes + counters.outside_bytes.load(), shared.run_log);
  }
  if (for_good) {
    say<Cause::plan_unusable>(why);
  } else {
    say_as_info<Cause::plan_unusable>(why);
  }
  shared.run_log.write_on_demand(short_of_memory ? run_log::on_demand::refused : run_log::on_demand::unusable, why,
                                 plan);
  shared.refusal.set(why);
  shared.refused_for_room.store(short_of_memory, std::memory_order_release);
  shared.dispatcher_divergences.fetch_add(1, std::memory_order_release);
  if (for_good) shared.plan_unusable[plan].store(true, std::memory_order_release);
  resume_recording(shared.common);
}

// No other plan rests on facts, either.
void give_up_facts(PlanBoard& plans, uint32_t plan) noexcept {
  plans.facts_failed.store(true, std::memory_order_release);
  plans.plan_unusable[plan].store(true, std::memory_order_release);
}

// The tensor stays where it is with its bytes; only the program's allocation that it stands for changes. Where the next
// one lies elsewhere, the first one is forgotten when the plan ends.
void perform_handover(const LogEntry& entry, const PlanIndex& index, const Activation& activation) noexcept {
  const uint32_t which = index.plan.calls[entry.call].tensor;
  ResidentTensor* const tensor = activation.tensor(which);
  if (entry.kind == EntryKind::free) return tensor->hand_over();
  if (index.moves_in_handover(which)) return;
  tensor->taken_over();
  tensor->allocation = entry.allocation;
}

}  // namespace

void PlanExecutor::activate(const LogEntry& entry) noexcept {
  const uint32_t plan = entry.plan;
  const uint64_t iteration = entry.iteration;
  const PlanIndex* const plan_index = shared_.plans[plan].load(std::memory_order_acquire);
  Refusal refusal{phrase<Cause::plan_gone>()};
  const uint64_t calls = memory_.mappings.driver_calls();
  if (plan_index == nullptr || !activation_.enter(plan_index, entry.command, &refusal)) {
    const bool for_good = ++shared_.refusals[plan] >= (refusal.short_of_memory ? kPatienceForRoom : kPatience);
    return refuse(shared_, plan, refusal.why, refusal.short_of_memory, for_good);
  }
  shared_.refusals[plan] = 0;
  if (!repeats_.begin(plan_index)) {
    activation_.exit();
    shared_.facts_failed.store(true, std::memory_order_release);
    return refuse(shared_, plan, phrase<Cause::plan_needs_digests>(), false, true);
  }
  shared_.refusal.set({});
  if (plan_index != plan_.index) stopwatch_.open(&shared_, &memory_, plan_index, plan);
  plan_.index = plan_index;
  plan_.number = plan;
  progress_.begin(plan_index, iteration);
  plan_.active = true;
  plan_.closing = false;
  plan_.failure = nullptr;
  plan_.half_ended = 0;
  ordered_.entries.clear();
  ordered_.barrier = false;
  host_work_.clear();
  plan_.safety = memory_.safety->aliases() ? static_cast<PlanSafety*>(&safeties_.trusted) : &safeties_.strict;
  plan_.safety->begin(plan_index);
  transfers_.begin();
  stalls_.begin();
  intake_.next = shared_.command_log.head() + 1;  // behind the activate entry
  RunLogLine line(run_log::activate::line);
  line.add(run_log::activate::iteration, iteration)
      .add(run_log::activate::plan, uint64_t{plan})
      .add(run_log::activate::vmm_calls, memory_.mappings.driver_calls() - calls);
  shared_.run_log.write(line);
  say<Cause::plan_in_force>(plan + 1, iteration);
}

bool PlanExecutor::step() noexcept {
  memory_.lanes.poll();
  shared_.staging.reclaim(memory_.lanes);
  stalls_.look();
  bool progress = intake();
  if (!plan_.active) return true;
  progress |= issue_all();
  if (plan_.failure == nullptr && memory_.lanes.fault() != CUDA_SUCCESS) {
    shared_.faults.report(memory_.lanes.fault());
    plan_.failure = phrase<Cause::device_broke>();
  }
  if (plan_.failure == nullptr && !progress && stuck()) plan_.failure = phrase<Cause::program_waits>();
  if (plan_.failure != nullptr) diverge(plan_.failure);
  return progress || !plan_.active;
}

bool PlanExecutor::issue_all() noexcept {
  bool progress = collect_granted();
  progress |= plan_.safety->advance_arrivals();
  progress |= transfers_.advance_departures();
  progress |= check_repeats(false);
  progress |= plan_.safety->issue_releases();
  progress |= transfers_.issue(LaneKind::to_host);
  progress |= transfers_.issue(LaneKind::to_device);
  const bool ops = plan_.safety->issue_ops();
  if (!ops) mark_ends();
  progress |= ops;
  progress |= perform_ordered();
  return progress;
}

// A marker costs the host an event and the device a gap between two kernels. Work on other lanes waits for few ops; of
// the others it is enough to know roughly how far the device has come.
void PlanExecutor::mark_if_waited_for(Instance instance, LaneIndex lane) noexcept {
  if (plan_.index->waited_for[instance.vertex] || memory_.lanes[lane].unmarked() >= kUnmarked) memory_.lanes.mark(lane);
}

// No op can be issued now, or none before a range is mapped, which holds the host up. Where a lane comes to its end,
// its last op is looked at: does the device run dry, has it failed? As long as more is behind the markers that are
// there, the next of them tells early enough.
void PlanExecutor::mark_ends() noexcept {
  for (size_t i = 0; i < memory_.lanes.size(); ++i) {
    const auto lane = static_cast<LaneIndex>(i);
    const Lane& each = memory_.lanes[lane];
    if (!each.closed && each.issued - each.completed <= kUnmarked) memory_.lanes.mark(lane);
  }
}

bool PlanExecutor::intake() noexcept {
  const uint64_t tail = shared_.command_log.tail();
  intake_.seen_tail = tail;
  bool progress = false;
  while (intake_.next < tail && !ordered_.barrier) {
    const Taken taken = take(*shared_.command_log.at(intake_.next));
    if (taken == Taken::later) break;
    if (taken == Taken::diverge) {
      diverge(nullptr);
      return true;
    }
    ++intake_.next;
    progress = true;
  }
  return progress;
}

PlanExecutor::Taken PlanExecutor::take(LogEntry& entry) noexcept {
  const uint32_t call = entry.call;
  const uint64_t iteration = entry.iteration;
  switch (entry.kind) {
    case EntryKind::left_out:
      stopwatch_.part_left_out();
      [[fallthrough]];
    case EntryKind::op:
    case EntryKind::allocate:
    case EntryKind::free:
      if (call == kUnplanned) return Taken::diverge;
      if (const Taken taken = take_planned(entry); taken != Taken::yes) return taken;
      end_iteration(call, iteration);  // the entry may be another one by now
      return Taken::yes;
    case EntryKind::activate:
    case EntryKind::errand:
    case EntryKind::read_back:
      return Taken::diverge;
    case EntryKind::ordered:
      if (entry.all_resident) return Taken::diverge;
      break;
    case EntryKind::event_record:
    case EntryKind::event_wait:
    case EntryKind::stream_destroy:
      break;
  }
  // An event record only concerns the work before it. The others also hold back the entries after them.
  ordered_.entries.push_back(&entry);
  ordered_.barrier = entry.kind != EntryKind::event_record;
  return Taken::yes;
}

PlanExecutor::Taken PlanExecutor::take_planned(LogEntry& entry) noexcept {
  if (!progress_.is_open(entry.iteration) && !progress_.open(entry.iteration)) return Taken::later;
  const plan::Call& call = plan_.index->plan.calls[entry.call];
  if (call.kind == plan::CallKind::free_handover || call.kind == plan::CallKind::allocate_handover) {
    // A handover issues nothing: it takes effect when all that the program called before is issued.
    if (entry.call == 0) stopwatch_.begin(entry.iteration);
    ordered_.entries.push_back(&entry);
    return Taken::yes;
  }
  if (call.kind == plan::CallKind::late_free) {
    // The plan still needs the bytes: a release of ours ends the tensor.
    if (ResidentTensor* const tensor = activation_.tensor(call.tensor)) tensor->freed_late();
    shared_.command_log.done(&entry);
    return Taken::yes;
  }
  if (call.kind == plan::CallKind::allocate) {
    // The instance of the iteration before may still have work to be issued: then its range is not free yet.
    if (activation_.tensor(call.tensor) != nullptr) return Taken::later;
    CUresult cleared = CUDA_SUCCESS;
    if (!activation_.clear_range(call.tensor, &cleared)) {
      if (cleared != CUDA_SUCCESS) plan_.failure = phrase<Cause::not_unmapped>();
      return Taken::later;
    }
    if (entry.chunk_count != 0) activation_.allocate(call.tensor, entry.allocation, entry.size);
    stalls_.look_before_issue();
  }
  if (entry.call == 0) stopwatch_.begin(entry.iteration);
  if (call.kind == plan::CallKind::op && touches_host(entry)) host_work_.push_back(&entry);
  if (call.kind == plan::CallKind::allocate) {
    shared_.command_log.done(&entry);
  } else {
    progress_.submitted({entry.iteration, call.vertex}, &entry);
    plan_.safety->submitted({entry.iteration, call.vertex});
  }
  return Taken::yes;
}

// At the last call the next iteration begins: its first reloads need not wait for the program. The last call may be a
// free, which comes before the last work, or when the next iteration has begun.
void PlanExecutor::end_iteration(uint32_t call, uint64_t iteration) noexcept {
  const PlanIndex& index = *plan_.index;
  if (call != index.last_call && call != index.last_work) return;
  if (index.last_call != index.last_work && std::exchange(plan_.half_ended, iteration + 1) != iteration + 1) return;
  if (progress_.is_open(iteration + 1)) return;
  progress_.open(iteration + 1);
  stopwatch_.last_call();
}

bool PlanExecutor::perform_ordered() noexcept {
  bool progress = false;
  while (!ordered_.entries.empty() && ordered_.entries.front()->position == shared_.command_log.settled()) {
    LogEntry& entry = *ordered_.entries.front();
    switch (entry.kind) {
      case EntryKind::event_record:
        issuer_.enter_context(entry.command.context);
        stalls_.event_recorded(entry);
        issuer_.issue_event_record(entry);
        break;
      case EntryKind::event_wait:
        issuer_.enter_context(entry.command.context);
        stalls_.hold_for_event(entry);
        issuer_.issue_event_wait(entry);
        break;
      case EntryKind::stream_destroy:
        issuer_.issue_stream_destroy(entry);
        break;
      case EntryKind::allocate:
      case EntryKind::free:
        perform_handover(entry, *plan_.index, activation_);
        break;
      default:
        if (entry.waiter != nullptr) entry.waiter->done(CUDA_SUCCESS);
        break;
    }
    ordered_.barrier = ordered_.barrier && ordered_.entries.size() > 1;
    ordered_.entries.pop_front();
    shared_.command_log.done(&entry);
    progress = true;
  }
  return progress;
}

// The plan ends. Where the allocation of a handover was taken in, later work on the tensor may be with the driver
// already, so the handover is performed although entries before it are not issued. Where only the free was taken in,
// the tensor goes when that free is performed on demand.
void PlanExecutor::settle_handovers() noexcept {
  std::vector<std::pair<uint32_t, LogEntry*>> freed;
  for (LogEntry* entry : ordered_.entries) {
    if (entry->kind != EntryKind::free && entry->kind != EntryKind::allocate) continue;
    const uint32_t tensor = plan_.index->plan.calls[entry->call].tensor;
    if (entry->kind == EntryKind::free) {
      freed.emplace_back(tensor, entry);
      continue;
    }
    for (auto& [of, free] : freed) {
      if (of != tensor || free == nullptr) continue;
      shared_.command_log.done(free);
      free = nullptr;
    }
    perform_handover(*entry, *plan_.index, activation_);
    shared_.command_log.done(entry);
  }
  ordered_.entries.clear();
}

// What repeats have made is what was dropped, or the plan ends. `wait`: for all that was issued.
bool PlanExecutor::check_repeats(bool wait) noexcept {
  if (!repeats_.unchecked()) return false;
  bool progress = false;
  const auto done = [&](Instance instance, LaneUse use) {
    progress = true;
    progress_.issued(instance, use);
  };
  std::string why;
  const bool good = wait ? repeats_.conclude(done, &why) : repeats_.advance(done, &why);
  if (good) return progress;
  plan_.repeat_failure = why;
  if (plan_.failure == nullptr) plan_.failure = plan_.repeat_failure.c_str();
  give_up_facts(shared_, plan_.number);
  return true;
}

// Host bytes are no tensors, so the plan does not order the ops that touch them: the program's order is kept.
// And what repeats have made is compared before anything of it may reach the host.
bool PlanExecutor::host_order_allows(const LogEntry* entry) noexcept {
  if (entry == nullptr) return true;  // a repeat
  if ((host_work_.empty() && !repeats_.unchecked()) || !touches_host(*entry)) return true;
  if (repeats_.unchecked()) return false;
  return std::none_of(host_work_.begin(), host_work_.end(), [&](const LogEntry* other) {
    return other->position < entry->position && host_conflict(other->command, entry->command);
  });
}

uint64_t PlanExecutor::outstanding_ops() noexcept {
  const Lane& lane = memory_.lanes[plan_.compute_lane];
  return plan_.compute_lane == Lanes::kToDevice ? 0 : lane.issued - lane.completed;
}

void PlanExecutor::issue_op(Instance instance) noexcept {
  LogEntry& entry = *progress_.entry(instance);
  issuer_.enter_context(entry.command.context);
  const LaneIndex lane = memory_.lanes.lane_of(entry.command.stream, entry.command.context);
  stalls_.hold(lane, transfers_.awaited_elsewhere(instance, lane));
  if (transfers_.wait_for_predecessors(instance, lane) != CUDA_SUCCESS ||
      plan_.safety->wait_for_fence(instance, lane) != CUDA_SUCCESS) {
    plan_.failure = phrase<Cause::not_ordered>();
    return;
  }
  if (!plan_.safety->place(instance.vertex, lane)) return;
  plan_.compute_lane = lane;
  stalls_.look_before_issue();
  if (entry.program_issues) {
    progress_.taken(instance);
    granted_.push_back({instance, lane});
    shared_.command_log.pass(&entry);
    entry.waiter->grant();
    return stalls_.look_behind_issue();
  }
  const bool runs = entry.kind != EntryKind::left_out;
  const CUresult result = runs ? issuer_.issue(entry, transfers_.activity_id(instance)) : CUDA_SUCCESS;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    plan_.failure = phrase<Cause::launch_lacked_memory>();  // on demand it is issued again, with less of ours
    return;
  }
  op_issued(instance, lane, result);
  stalls_.look_behind_issue();
}

void PlanExecutor::op_issued(Instance instance, LaneIndex lane, CUresult result) noexcept {
  LogEntry& entry = *progress_.entry(instance);
  const LaneUse use{lane, memory_.lanes.advance(lane)};
  mark_if_waited_for(instance, lane);
  for (const plan::OpAccess& access : plan_.index->plan.calls[entry.call].accesses) {
    ResidentTensor* const tensor = activation_.tensor(access.tensor);
    if (tensor == nullptr) continue;
    tensor->uses.add(use.lane, use.position);
    if ((access.mode & trace::kAccessWrite) != 0) tensor->wrote();
  }
  plan_.safety->issued(plan_.index->plan.calls[entry.call], use);
  std::erase(host_work_, &entry);
  if (const uint32_t repeat = plan_.index->repeated_by[instance.vertex]; repeat != plan::kNone) {
    repeats_.retain(repeat, entry.command);
    if (entry.command.kernel == 0) {
      plan_.failure = phrase<Cause::launch_not_repeatable>();
      give_up_facts(shared_, plan_.number);
    }
  }
  if (entry.kind == EntryKind::op) {
    issuer_.refused_launches.answered(entry, result);
    issuer_.conclude(entry, result, use);
  }
  progress_.issued(instance, use);
  if (result != CUDA_SUCCESS) plan_.failure = phrase<Cause::call_failed>();
  shared_.command_log.done(&entry);
}

bool PlanExecutor::collect_granted() noexcept {
  bool progress = false;
  for (size_t i = 0; i < granted_.size();) {
    const GrantedOp granted = granted_[i];
    LogEntry* const entry = progress_.entry(granted.instance);
    if (entry->program_issued.load(std::memory_order_acquire) == 0) {
      ++i;
      continue;
    }
    granted_.erase(granted_.begin() + static_cast<std::ptrdiff_t>(i));
    op_issued(granted.instance, granted.lane, entry->program_result);
    progress = true;
  }
  return progress;
}

bool PlanExecutor::anything_ready() noexcept {
  const auto transfer = [&](Instance instance) {
    return !plan_.closing || progress_.has_submitted(instance.iteration);
  };
  return plan_.safety->any_op_ready() || progress_.find_ready(LaneKind::to_host, transfer) ||
         progress_.find_ready(LaneKind::to_device, transfer);
}

// Vertices become ready only by issuing others: when none is ready and the program waits, none ever will be.
bool PlanExecutor::stuck() noexcept {
  if (!granted_.empty() || plan_.safety->any_arriving() || transfers_.any_departing() || repeats_.unchecked() ||
      (progress_.unissued_submitted() == 0 && ordered_.entries.empty() && intake_.next == shared_.command_log.tail())) {
    return false;
  }
  const uint64_t polls = shared_.counters.polls.load(std::memory_order_relaxed);
  const bool waits = shared_.command_log.blocked() != 0 || polls != intake_.polls_seen;
  intake_.polls_seen = polls;
  // A program thread appends before it waits; entries that came after this step looked are not held back yet.
  return waits && shared_.command_log.tail() == intake_.seen_tail && !anything_ready();
}

void PlanExecutor::finish_submitted() noexcept {
  plan_.closing = true;
  while (plan_.failure == nullptr && (progress_.unissued_submitted() != 0 || !granted_.empty())) {
    memory_.lanes.poll();
    stalls_.look();
    if (issue_all()) continue;
    if (memory_.lanes.fault() != CUDA_SUCCESS ||
        (granted_.empty() && !plan_.safety->any_arriving() && !transfers_.any_departing() && !repeats_.unchecked() &&
         !anything_ready())) {
      break;
    }
    nap(20'000);
  }
}

// Ends the plan. `why`: the reason when it is ours; nullptr when the program does something else than the plan says.
void PlanExecutor::diverge(const char* why) noexcept {
  finish_submitted();
  while (!granted_.empty()) {
    if (!collect_granted()) nap(20'000);
  }
  check_repeats(true);
  perform_ordered();
  settle_handovers();
  plan_.safety->cancel_arrivals();
  transfers_.settle_departures();
  activation_.exit();
  repeats_.rebuild();
  activation_.forget_freed();
  plan_.active = false;
  stopwatch_.end();
  resume_recording(shared_.common);
  if (why == nullptr) why = plan_.failure;
  if (why == nullptr) return;
  shared_.dispatcher_divergences.fetch_add(1, std::memory_order_release);
  shared_.counters.divergences.fetch_add(1, std::memory_order_relaxed);
  RunLogLine line(run_log::divergence::line);
  line.add(run_log::divergence::iteration, progress_.next_open() - 1)
      .add(run_log::divergence::reason, std::string(why));
  shared_.run_log.write(line);
  say<Cause::plan_left>(why);
}

void PlanExecutor::finish() noexcept {
  if (plan_.active) stopwatch_.end();
}

}  // namespace reprise::replay

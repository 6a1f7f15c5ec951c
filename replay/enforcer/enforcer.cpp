#include "replay/enforcer/enforcer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "preload/base/causes.h"
#include "preload/calls/enforcer_factory.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "replay/issue/held_memory.h"

namespace reprise::replay {
namespace {

// How much earlier than it is needed host memory is pinned.
constexpr uint64_t kLeastAhead = 64ull << 20;
constexpr uint64_t kMostAhead = 1ull << 30;

plan::Safety safety_of(const Config& config) noexcept {
  plan::Safety safety = plan::Safety::strict;
  if (!config.audit) plan::read_safety(config.safety, &safety);
  return safety;
}

// What the driver's documentation says: memsets and copies between device addresses never wait, synchronous copies and
// copies of pageable host memory do.
bool waits_for_completion(const Command& command) noexcept {
  using trace::OpKind;
  if (command.op == OpKind::memset || command.op == OpKind::copy_device_to_device || command.op == OpKind::copy_peer) {
    return false;
  }
  if ((command.flags & trace::kOpSynchronous) != 0) return true;
  return command.host_pageable && (command.host_source != nullptr || command.host_destination != nullptr);
}

bool may_be_staged(const Command& command) noexcept {
  return command.op == trace::OpKind::copy_host_to_device && command.host_pageable && command.host_source != nullptr &&
         command.host_source_offset != 0 && command.size <= Staging::kLargest && command.access_count == 1 &&
         command.accesses[0].size == command.size;
}

CUresult allocate_by_driver(const AllocateCall& call, CUstream stream, CUdeviceptr* address) noexcept {
  if (call.origin == trace::Origin::async) return driver().cuMemAllocAsync(address, call.size, stream);
  if (call.origin == trace::Origin::pool) {
    return driver().cuMemAllocFromPoolAsync(address, call.size, call.pool, stream);
  }
  return driver().cuMemAlloc(address, call.size);
}

}  // namespace

Enforcer::Enforcer(const Config& config, Recorder* recorder) noexcept
    : config_(config),
      recorder_(recorder),
      dispatcher_(std::make_unique<Dispatcher>(&shared_)),
      plans_(config_, recorder, &shared_, safety_of(config)) {
  started_ns_ = RunLogWriter::now_ns();
  shared_.safety = safety_of(config);
  shared_.strict = shared_.safety != plan::Safety::trusted;
  // The launcher has removed an older one, and each program that this one starts has its lines there, too.
  const bool launched = config.launched() && !config.audit;
  shared_.run_log.open(config.run_log, launched ? RunLogWriter::Others::write_there : RunLogWriter::Others::none);
}

CUresult Enforcer::allocate(const AllocateCall& call, CUdeviceptr* address) noexcept {
  const bool ready = managing() || open(call.context, call.device);
  if (!ready || call.context != shared_.context) {
    // Another device, or a driver without virtual memory management: counted, not managed. The runtime asks without a
    // context first in a thread that has none, and is refused.
    const CUresult result = allocate_by_driver(call, stand_in(call.stream), address);
    if (result == CUDA_SUCCESS) allocated_elsewhere(call);
    return result;
  }
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  const CUstream stream = stand_in(call.stream);
  pin_ahead(call.size);
  const std::lock_guard lock(submit_mutex_);
  const FollowedCall step = follower().allocate(call);
  plans_.after_step(step, call.sequence);
  const uint32_t chunks = shared_.addresses.chunk_count(call.size);
  if (!step.planned && chunks * shared_.chunk_bytes > limit_bytes() && !can_be_used(chunks * shared_.chunk_bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const uint64_t missing = step.planned ? 0 : missing_host_bytes(std::max(chunks, 1u) * shared_.chunk_bytes);
  if (missing != 0) return refuse(call, missing);
  *address = step.planned ? step.address : shared_.addresses.allocate(call.size);
  if (*address == 0) return refuse(call, 0);
  append_open_handovers(call.context);
  append_activate(step, call.context);
  LogEntry* const entry = shared_.command_log.append(EntryKind::allocate);
  entry->command.context = call.context;
  entry->address = *address;
  entry->size = call.size;
  entry->chunk_count = chunks;
  entry->allocation = call.allocation;
  entry->stream_ordered = call.origin == trace::Origin::async || call.origin == trace::Origin::pool;
  entry->command.stream = stream;
  if (step.planned) {
    entry->call = step.match.call;
    entry->iteration = step.match.iteration;
  }
  observe_allocated(*address, call.size, call.sequence);
  plans_.allocated(call, *address);
  entry->peak_footprint = shared_.counters.peak_footprint_bytes.load(std::memory_order_relaxed);
  shared_.command_log.publish(entry);
  return CUDA_SUCCESS;
}

uint64_t Enforcer::limit_bytes() const noexcept {
  return shared_.counters.limit_chunks.load(std::memory_order_relaxed) * shared_.chunk_bytes;
}

// All bytes that do not fit on the device need a place on the host, and one call's tensors may still be offloaded while
// the next call's are reloaded: `moving`.
uint64_t Enforcer::host_bytes_for(uint64_t more, uint64_t moving) const noexcept {
  const uint64_t live = follower().live().in_chunks() + more;
  const uint64_t limit = limit_bytes();
  return live <= limit ? 0 : std::min(live, live - limit + moving);
}

// Makes room on the host for `more`. 0: there is; else what it would have to hold, by the limit as it was then.
uint64_t Enforcer::missing_host_bytes(uint64_t more) noexcept {
  const uint64_t moving = shared_.counters.largest_working_set.load(std::memory_order_relaxed) * shared_.chunk_bytes;
  const uint64_t bytes = host_bytes_for(more, moving);
  if (bytes == 0 || shared_.host->reserve(bytes)) return 0;
  const uint64_t least = host_bytes_for(more, 0);
  return least == 0 || shared_.host->reserve(least) ? 0 : least;
}

// Pinning 1 GiB takes a third of a second and more. Other threads go on meanwhile: it is waited for without the lock,
// and begun before it is needed.
void Enforcer::pin_ahead(uint64_t more) noexcept {
  uint64_t needed = 0;
  uint64_t soon = 0;
  {
    const std::lock_guard lock(submit_mutex_);
    // A plan's slots are made when it begins; where all fits there are none.
    if (follower().following() || config_.budget.fraction >= 1) return;
    const uint64_t moving = shared_.counters.largest_working_set.load(std::memory_order_relaxed) * shared_.chunk_bytes;
    more = std::max(shared_.addresses.chunk_count(more), 1u) * shared_.chunk_bytes;
    needed = host_bytes_for(more, moving);
    soon = host_bytes_for(more + std::clamp(limit_bytes() / 4, kLeastAhead, kMostAhead), moving);
  }
  if (soon == 0) return;
  shared_.host->want(soon);
  if (needed > 0) shared_.host->reserve(needed);
}

// A tensor comes to the device as a whole. One that never can is refused when it is allocated, as a device of that size
// does it: programs that look for the largest batch that fits catch that error, and not the one of a launch.
bool Enforcer::can_be_used(uint64_t bytes) noexcept {
  constexpr uint32_t kMostTold = 5;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  const RoomFigures room = shared_.room.get();
  const uint64_t taken = room.elsewhere + outside;
  const bool tells = shared_.counters.shortages.load() < kMostTold;
  if (room.total != 0 && bytes > room.total - std::min(room.total, taken)) {  // with any budget
    shared_.counters.shortages.fetch_add(1);
    if (!tells) return false;
    shared_.room.write(shared_.run_log);
    say<Cause::allocation_above_room>(bytes, who_has_the_rest(room), how_to_get_room(room, bytes + outside));
    return false;
  }
  const BudgetRule rule = budget_of(shared_);
  const uint64_t budget = rule.bytes - std::min(rule.bytes, outside);
  if (rule.bytes == 0 || bytes <= budget) return true;
  if (shared_.counters.shortages.fetch_add(1) >= kMostTold) return false;
  say<Cause::allocation_above_budget>(bytes, budget, bytes + outside);
  RunLogLine line(run_log::shortage::line);
  line.add(run_log::shortage::call, std::string("An allocation"))
      .add(run_log::shortage::needed_bytes, bytes)
      .add(run_log::shortage::least_bytes, bytes + outside);
  shared_.run_log.write(line);
  return false;
}

CUresult Enforcer::refuse(const AllocateCall& call, uint64_t missing_host_bytes) noexcept {
  // The limit may have moved since the host's memory was asked for.
  const uint64_t chunks = std::max(shared_.addresses.chunk_count(call.size), 1u);
  const uint64_t live = follower().live().in_chunks() + chunks * shared_.chunk_bytes;
  const uint64_t limit = missing_host_bytes == 0 ? limit_bytes() : live - missing_host_bytes;
  refused_.store(true, std::memory_order_relaxed);
  say<Cause::allocation_above_tiers>(call.size, live, limit, shared_.host->cap());
  if (missing_host_bytes != 0) {
    RunLogLine line(run_log::host_full::line);
    line.add(run_log::host_full::needed_bytes, missing_host_bytes)
        .add(run_log::host_full::host_bytes, shared_.host->cap());
    shared_.run_log.write(line);
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void Enforcer::append_activate(const FollowedCall& step, CUcontext context) noexcept {
  if (!step.activate) return;
  Command command;
  command.context = context;
  command.payload = step.cast->data();
  command.payload_bytes = static_cast<uint32_t>(step.cast->size() * sizeof(CUdeviceptr));
  LogEntry* const entry = shared_.command_log.append_op(command);
  entry->kind = EntryKind::activate;
  entry->iteration = step.match.iteration;
  entry->plan = step.plan;
  shared_.command_log.publish(entry);
}

// The plan ended before the allocations came that take these ranges over.
void Enforcer::append_open_handovers(CUcontext context) noexcept {
  for (const OpenHandover& handover : follower().take_open_handovers()) {
    LogEntry* const entry = shared_.command_log.append(EntryKind::free);
    entry->command.context = context;
    entry->address = handover.address;
    entry->size = handover.size;
    entry->ends_handover = true;
    shared_.command_log.publish(entry);
    release_small(handover.address, handover.size);
  }
}

void Enforcer::append_free(const FreeCall& call, CUstream stream, const FollowedCall& step) noexcept {
  append_open_handovers(call.context);
  append_activate(step, call.context);
  LogEntry* const entry = shared_.command_log.append(EntryKind::free);
  entry->command.context = call.context;
  entry->address = call.address;
  entry->size = call.size;
  entry->allocation = call.allocation;
  entry->stream_ordered = call.stream_ordered;
  entry->command.stream = stream;
  if (step.planned) {
    entry->call = step.match.call;
    entry->iteration = step.match.iteration;
    entry->free_handover = follower().matcher().plan().calls[step.match.call].kind == plan::CallKind::free_handover;
  }
  plans_.freed(call.allocation);
  const bool handover = entry->free_handover;
  shared_.command_log.publish(entry);
  if (!handover) release_small(call.address, call.size);
}

// The place of a small tensor may be the next one's: whoever is there later comes later in the log, too.
void Enforcer::release_small(CUdeviceptr address, uint64_t size) noexcept {
  if (shared_.arena.slabs.contains(address)) shared_.addresses.release(address, size);
}

// Memory that is not ours: of another device, of before, of pools of their own kind, managed. Work that uses it may
// still be deferred.
CUresult Enforcer::release_by_driver(const FreeCall& call) noexcept {
  if (managing()) drain();
  return seen(call.stream_ordered ? driver().cuMemFreeAsync(call.address, stand_in(call.stream))
                                  : driver().cuMemFree(call.address));
}

CUresult Enforcer::release(const FreeCall& call) noexcept {
  if (!shared_.arena_all.contains(call.address)) return release_by_driver(call);
  if (!managing()) return CUDA_SUCCESS;  // after the end there is nothing to free
  // A free that answers an error has freed nothing, so that the program may try again. One that is told once waits for
  // a call that can tell it.
  if (is_sticky(shared_.faults.peek())) return shared_.faults.take();
  // cuMemFree synchronises. The program can only tell by work that writes host memory, so that is what is waited for
  // (docs/decisions/0003).
  const uint64_t visible = host_visible_.load();
  if (!call.stream_ordered && visible > synchronized_.load()) {
    // To wait for the context would end an open capture.
    const bool captures = shared_.captures.load() > 0;
    const CUresult result =
        captures ? run_errand(Errand::synchronize, phrase<Cause::a_free>()) : synchronize_behind(visible);
    if (result != CUDA_SUCCESS) return result;
  }
  const CUstream stream = stand_in(call.stream);
  const std::lock_guard lock(submit_mutex_);
  const FollowedCall step = follower().free(call);
  plans_.after_step(step, call.sequence);
  observe_freed(call.address, call.sequence);
  append_free(call, stream, step);
  return CUDA_SUCCESS;
}

// Might the call need more than the budget can ever hold? Then its thread waits for the answer, so that it is this call
// that answers CUDA_ERROR_OUT_OF_MEMORY, with nothing done, and the program may go on. Too often is right: each access
// counts its whole allocation and a chunk for what is rounded. A percentage is never less than what a call needs.
bool Enforcer::may_not_fit(const Command& command) const noexcept {
  if (fixed_budget() == 0) return false;
  const uint64_t most = command.operand_bytes + command.access_count * shared_.chunk_bytes;
  const uint64_t outside = shared_.counters.outside_bytes.load(std::memory_order_relaxed);
  return most > chunk_limit(budget_of(shared_), shared_.chunk_bytes, outside, 0, 0) * shared_.chunk_bytes;
}

// Must the calling thread wait for this entry? Sets how it is to be issued.
bool Enforcer::decide_wait(LogEntry& entry) noexcept {
  const Command& command = entry.command;
  if (command.captured) {
    entry.program_issues = true;
    return true;
  }
  if (waits_for_completion(command)) {
    if (may_be_staged(command) && shared_.staging.stage(command.host_source, command.size, &entry.staging)) {
      entry.staged = true;
      return may_not_fit(command) || shared_.captures.load(std::memory_order_relaxed) > 0;
    }
    entry.program_issues = true;
    return true;
  }
  return command.first_of_shape || command.op == trace::OpKind::host_function ||
         (command.flags & trace::kOpOpaque) != 0 || may_not_fit(command) ||
         shared_.captures.load(std::memory_order_relaxed) > 0;
}

// What a plan knows that its call touches stands in the log: the plan may be left before the call is issued.
LogEntry* Enforcer::append_op(const Command& command, const FollowedCall& step) noexcept {
  if (!step.planned || !follower().matcher().knows_pointees(step.match)) return shared_.command_log.append_op(command);
  Command completed = command;
  accesses_.assign(command.accesses, command.accesses + command.access_count);
  follower().matcher().add_pointees(step.match, &accesses_, &completed.operand_bytes);
  completed.kernel = 0;  // it reaches what no parameter names, so it is not launched again
  completed.accesses = accesses_.data();
  completed.access_count = static_cast<uint32_t>(accesses_.size());
  return shared_.command_log.append_op(completed);
}

// Only what touches our memory gains by being deferred. A thread that calls other work faster than it can be issued
// waits here, so that calls of other threads do not wait behind all of it.
void Enforcer::wait_for_turn(const Command& command) noexcept {
  constexpr uint64_t kMostCallsAhead = 256;
  const uint64_t settled = shared_.command_log.settled();  // first: it never passes the tail
  const uint64_t tail = shared_.command_log.tail();
  if (tail - settled <= kMostCallsAhead) return;
  const auto ours = [&](const Access& access) { return shared_.arena_all.contains(access.address); };
  if (std::any_of(command.accesses, command.accesses + command.access_count, ours)) return;
  {
    const std::lock_guard lock(submit_mutex_);
    if (follower().following()) return;  // a plan may hold calls back until others come
  }
  shared_.command_log.wait_settled(tail - kMostCallsAhead);
}

CUresult Enforcer::submit(const Command& command) noexcept {
  if (!managing()) {
    if (may_wait_for_program(command.op)) launched_.store(true, std::memory_order_relaxed);
    return command.issue(command.payload, command.stream);
  }
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  wait_for_turn(command);
  const CUstream stream = stand_in(command.stream);
  Waiter& waiter = Waiter::of_this_thread();
  LogEntry* entry;
  bool waits;
  {
    const std::lock_guard lock(submit_mutex_);
    if ((command.flags & trace::kOpOpaque) != 0 || command.captured) follower().interrupt(command.name);
    const FollowedCall step = command.captured ? FollowedCall{} : follower().op(command);
    plans_.after_step(step, command.sequence);
    append_open_handovers(command.context);
    if (step.look_first) return kLookFirst;
    append_activate(step, command.context);
    entry = append_op(command, step);
    entry->command.stream = stream;
    if (step.planned) {
      entry->call = step.match.call;
      entry->iteration = step.match.iteration;
    }
    waits = decide_wait(*entry);
    if (waits) {
      waiter.arm();
      entry->waiter = &waiter;
    }
    if ((command.flags & trace::kOpHostVisible) != 0 || command.host_destination != nullptr) {
      host_visible_.store(entry->position + 1, std::memory_order_relaxed);
    }
    shared_.command_log.publish(entry);
  }
  return waits ? wait_for(waiter, *entry, command, stream) : CUDA_SUCCESS;
}

CUresult Enforcer::wait_for(Waiter& waiter, LogEntry& entry, const Command& command, CUstream stream) noexcept {
  shared_.command_log.enter_blocked();
  const bool granted = waiter.wait();
  shared_.command_log.leave_blocked();
  if (!granted) return waiter.result();
  const CUresult fault = shared_.faults.take();  // work that was called before was lost: there is nothing to read
  ActivitySource* const activity = shared_.recording.load(std::memory_order_relaxed) && !command.captured
                                       ? shared_.activity.load(std::memory_order_acquire)
                                       : nullptr;
  if (activity != nullptr) activity->push(command.sequence, stream);
  CUresult result = fault;
  if (fault == CUDA_SUCCESS) {
    const Performing performing(command.sequence);
    result = seen(command.issue(command.payload, stream));
  }
  if (activity != nullptr) activity->pop(command.sequence, stream);
  entry.program_result = result;
  entry.program_issued.store(1, std::memory_order_release);
  entry.program_issued.notify_all();
  shared_.command_log.wake();
  return result;
}

}  // namespace reprise::replay

reprise::Handler* reprise::make_enforcer(const Config& config, Recorder* recorder) noexcept {
  Config settings = config;
  if (settings.plan != nullptr) {
    const Result<plan::Plan> plan = plan::read_plan(settings.plan);
    if (!plan.ok() && !settings.budget.given()) {
      say<Cause::plan_unreadable>(plan.status().message());
      return nullptr;
    }
    if (plan.ok()) settings.plan_chunk_bytes = plan.value().chunk_bytes;
    if (!settings.budget.given()) settings.budget.bytes = plan.value().budget_bytes;  // as `reprise replay` does
  }
  auto* const enforcer = new (std::nothrow) replay::Enforcer(settings, recorder);
  if (enforcer == nullptr) say<Cause::no_memory_to_manage>();
  return enforcer;
}

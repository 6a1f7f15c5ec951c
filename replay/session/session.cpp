#include "replay/session/session.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "preload/base/causes.h"
#include "preload/base/runtime.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/facts/store.h"
#include "preload/landing/landing.h"
#include "replay/memory/tiers/available.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kLogBytes = 32u << 20;

uint64_t host_cap_of(const Config& config) noexcept {
  const Amount& wanted = config.host_memory;
  if (wanted.fraction > 0) {
    return static_cast<uint64_t>(static_cast<double>(available_host_memory()) * wanted.fraction);
  }
  return host_memory_cap(wanted.bytes);
}

plan::Safety safety_of(const Config& config) noexcept {
  plan::Safety safety = config.audit ? plan::Safety::strict : plan::kDefaultSafety;
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

}  // namespace

Session::Session(const Config& config, Recorder* recorder, Common* common, Account* account, Session* before) noexcept
    : config_(config),
      recorder_(recorder),
      is_first_(before == nullptr),
      shared_(common, account, safety_of(config)),
      dispatcher_(&shared_),
      plans_(config, recorder, &shared_, before != nullptr ? &before->plans_ : nullptr),
      orders_(&shared_, &plans_, recorder),
      admission_(config, &shared_, &plans_) {}

CUresult Session::open(CUcontext context, CUdevice device) noexcept {
  shared_.context = context;
  shared_.device = device;
  start_examining();
  const uint64_t held = shared_.common.held_on(device);
  shared_.account.open(config_, device, held);
  if (!shared_.command_log.open(kLogBytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  using Measure = Dispatcher::Measure;
  Measure measure = Measure::nothing;
  if (is_first_ && recorder_ != nullptr) {
    measure = Measure::planning;
  } else if (is_first_ && shared_.run_log.enabled() && !shared_.common.launched.load()) {
    measure = Measure::link;  // what runs already may wait for the program, which waits for us
  }
  return dispatcher_.start(host_cap_of(config_), measure, held);
}

void Session::start_examining() noexcept {
  char name[256] = {};
  if (config_.examine != 0 || config_.audit || plan::is_by_kernel(shared_.safety)) identify_kernels();
  if (driver().cuDeviceGetName(name, sizeof name - 1, shared_.device) != CUDA_SUCCESS) return;
  try {
    const std::string folder = facts::folder_of_facts(config_.facts);
    const bool told = !is_first_ || (config_.audit && config_.launched());  // `reprise audit` says it itself
    if (folder.empty() && !told && (config_.audit || config_.examine != 0)) {
      say<Cause::facts_unusable>(facts::why_no_facts());
    }
    if (config_.audit) return dispatcher_.audit(folder, name, config_.audit_iterations);
    dispatcher_.examine({config_.examine * uint64_t{1'000'000'000}, config_.examine_memory.bytes}, folder, name);
  } catch (...) {  // out of memory: nothing is examined
  }
}

CUresult Session::end() noexcept {
  const CUresult result = orders_.run_errand(Errand::close, phrase<Cause::the_context_ended>());
  if (result == CUDA_SUCCESS) dispatcher_.wait_ended();
  return result;
}

std::vector<CUdeviceptr> Session::leave() noexcept {
  const std::lock_guard lock(shared_.submit_mutex);
  std::vector<CUdeviceptr> gone;
  for (const auto& [id, live] : plans_.follower().live().all()) gone.push_back(live.address);
  shared_.account.close(dispatcher_.memory());
  plans_.close();
  shared_.faults.clear();
  shared_.context = nullptr;
  return gone;
}

void Session::say_why_unplanned() noexcept {
  const std::unique_lock lock(shared_.submit_mutex, std::try_to_lock);
  if (lock.owns_lock() && is_first_ && shared_.context != nullptr) plans_.say_why_unplanned();
}

CUresult Session::allocate(const AllocateCall& call, CUstream stream, CUdeviceptr* address) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  admission_.pin_ahead(call.size);
  const std::lock_guard lock(shared_.submit_mutex);
  const FollowedCall step = plans_.follower().allocate(call);
  plans_.after_step(step, call.sequence);
  const uint32_t chunks = shared_.addresses.chunk_count(call.size);
  if (!step.planned && chunks * shared_.chunk_bytes > admission_.limit_bytes() &&
      !admission_.can_be_used(chunks * shared_.chunk_bytes)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const uint64_t missing = step.planned ? 0 : admission_.missing_host_bytes(std::max(chunks, 1u) * shared_.chunk_bytes);
  if (missing != 0) return admission_.refuse(call, missing);
  *address = step.planned ? step.address : shared_.addresses.allocate(call.size, admission_.room_chunks());
  if (*address == 0) return admission_.refuse(call, 0);
  append_open_handovers(call.context);
  append_activate(step, call.context);
  append_left_out(step, call.context, stream);
  LogEntry* const entry = shared_.command_log.append(EntryKind::allocate);
  entry->command.context = call.context;
  entry->address = *address;
  entry->size = call.size;
  entry->chunk_count = chunks;
  entry->allocation = call.allocation;
  entry->stream_ordered = call.origin == trace::Origin::async || call.origin == trace::Origin::pool;
  entry->command.stream = stream;
  if (step.planned) {
    const plan::Plan& plan = plans_.follower().matcher().plan();
    entry->call = step.match.call;
    entry->iteration = step.match.iteration;
    entry->chunk_count = plan.tensors[plan.calls[step.match.call].tensor].chunk_count;  // of the place that it takes
  }
  observe_allocated(*address, call.size, call.sequence);
  plans_.allocated(call, *address);
  entry->peak_footprint = shared_.counters.peak_footprint_bytes.load(std::memory_order_relaxed);
  shared_.command_log.publish(entry);
  return CUDA_SUCCESS;
}

void Session::append_activate(const FollowedCall& step, CUcontext context) noexcept {
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
void Session::append_open_handovers(CUcontext context) noexcept {
  for (const OpenHandover& handover : plans_.follower().take_open_handovers()) {
    LogEntry* const entry = shared_.command_log.append(EntryKind::free);
    entry->command.context = context;
    entry->address = handover.address;
    entry->size = handover.size;
    entry->ends_handover = true;
    shared_.command_log.publish(entry);
    if (shared_.arena.slabs.contains(handover.address)) shared_.addresses.release(handover.address, handover.size);
  }
}

// The calls of a part that the program has left out, in its place: on the stream of the call that comes behind it.
void Session::append_left_out(const FollowedCall& step, CUcontext context, CUstream stream) noexcept {
  if (step.left_out == nullptr) return;
  const Matcher& matcher = plans_.follower().matcher();
  for (const Match& match : *step.left_out) {
    const plan::Call& call = matcher.plan().calls[match.call];
    const bool is_op = call.kind == plan::CallKind::op;
    const bool is_allocation = call.kind == plan::CallKind::allocate;
    LogEntry* const entry = shared_.command_log.append(is_op           ? EntryKind::left_out
                                                       : is_allocation ? EntryKind::allocate
                                                                       : EntryKind::free);
    entry->command.context = context;
    entry->command.stream = stream;
    entry->call = match.call;
    entry->iteration = match.iteration;
    if (!is_op) {
      const plan::Tensor& tensor = matcher.plan().tensors[call.tensor];
      entry->address = matcher.address_of(call.tensor);
      entry->size = tensor.size;
      entry->chunk_count = tensor.chunk_count;
      entry->stream_ordered = true;
      entry->peak_footprint = shared_.counters.peak_footprint_bytes.load(std::memory_order_relaxed);
    }
    shared_.command_log.publish(entry);
  }
}

void Session::append_free(const FreeCall& call, CUstream stream, const FollowedCall& step) noexcept {
  append_open_handovers(call.context);
  append_activate(step, call.context);
  append_left_out(step, call.context, stream);
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
    const Matcher& matcher = plans_.follower().matcher();
    entry->free_handover = matcher.hands_over(matcher.plan().calls[step.match.call]);
  }
  plans_.freed(call.allocation);
  // The place may be the next tensor's: what is there later comes later in the log, too. A plan may keep a large one.
  const bool released = !entry->free_handover && (!step.planned || shared_.arena.slabs.contains(call.address));
  entry->released = released;
  shared_.command_log.publish(entry);
  if (released) shared_.addresses.release(call.address, call.size);
}

CUresult Session::release(const FreeCall& call, CUstream stream) noexcept {
  // A free that answers an error has freed nothing, so that the program may try again. One that is told once waits for
  // a call that can tell it.
  if (is_sticky(shared_.faults.peek())) return shared_.faults.take();
  const CUresult result = call.stream_ordered ? CUDA_SUCCESS : orders_.before_free();
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(shared_.submit_mutex);
  const FollowedCall step = plans_.follower().free(call);
  plans_.after_step(step, call.sequence);
  observe_freed(call.address, call.sequence);
  append_free(call, stream, step);
  return CUDA_SUCCESS;
}

// Must the calling thread wait for this entry? Sets how it is to be issued.
bool Session::decide_wait(LogEntry& entry) noexcept {
  const Command& command = entry.command;
  if (command.captured) {
    entry.program_issues = true;
    return true;
  }
  if (waits_for_completion(command)) {
    if (may_be_staged(command) && shared_.staging.stage(command.host_source, command.size, &entry.staging)) {
      entry.staged = true;
      return admission_.may_not_fit(command) || shared_.common.captures.load(std::memory_order_relaxed) > 0;
    }
    entry.program_issues = true;
    return true;
  }
  return command.first_of_shape || command.op == trace::OpKind::host_function ||
         (command.flags & trace::kOpOpaque) != 0 || admission_.may_not_fit(command) ||
         shared_.common.captures.load(std::memory_order_relaxed) > 0;
}

// What a plan knows that its call touches stands in the log: the plan may be left before the call is issued.
LogEntry* Session::append_op(const Command& command, const FollowedCall& step) noexcept {
  if (!step.planned || !plans_.follower().matcher().knows_pointees(step.match))
    return shared_.command_log.append_op(command);
  Command completed = command;
  accesses_.assign(command.accesses, command.accesses + command.access_count);
  plans_.follower().matcher().add_pointees(step.match, &accesses_, &completed.operand_bytes);
  completed.kernel = 0;  // it reaches what no parameter names, so it is not launched again
  completed.accesses = accesses_.data();
  completed.access_count = static_cast<uint32_t>(accesses_.size());
  return shared_.command_log.append_op(completed);
}

// Only what touches our memory gains by being deferred. A thread that calls other work faster than it can be issued
// waits here, so that calls of other threads do not wait behind all of it.
void Session::wait_for_turn(const Command& command) noexcept {
  constexpr uint64_t kMostCallsAhead = 256;
  const uint64_t settled = shared_.command_log.settled();  // first: it never passes the tail
  const uint64_t tail = shared_.command_log.tail();
  if (tail - settled <= kMostCallsAhead) return;
  const auto ours = [&](const Access& access) { return shared_.arena_all.contains(access.address); };
  if (std::any_of(command.accesses, command.accesses + command.access_count, ours)) return;
  {
    const std::lock_guard lock(shared_.submit_mutex);
    if (plans_.follower().following()) return;  // a plan may hold calls back until others come
  }
  shared_.command_log.wait_settled(tail - kMostCallsAhead);
}

CUresult Session::submit(const Command& command, CUstream stream) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  wait_for_turn(command);
  Waiter& waiter = Waiter::of_this_thread();
  LogEntry* entry;
  bool waits;
  {
    const std::lock_guard lock(shared_.submit_mutex);
    if ((command.flags & trace::kOpOpaque) != 0 || command.captured) plans_.follower().interrupt(command.name);
    const FollowedCall step = command.captured ? FollowedCall{} : plans_.follower().op(command);
    plans_.after_step(step, command.sequence);
    append_open_handovers(command.context);
    if (step.look_first) return kLookFirst;
    append_activate(step, command.context);
    append_left_out(step, command.context, stream);
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
      orders_.writes_host(entry->position);
    }
    shared_.command_log.publish(entry);
  }
  return waits ? wait_for(waiter, *entry, command, stream) : CUDA_SUCCESS;
}

CUresult Session::wait_for(Waiter& waiter, LogEntry& entry, const Command& command, CUstream stream) noexcept {
  shared_.command_log.enter_blocked();
  const bool granted = waiter.wait();
  shared_.command_log.leave_blocked();
  if (!granted) return waiter.result();
  const CUresult fault = shared_.faults.take();  // work that was called before was lost: there is nothing to read
  ActivitySource* const activity = shared_.common.recording.load(std::memory_order_relaxed) && !command.captured
                                       ? shared_.common.activity.load(std::memory_order_acquire)
                                       : nullptr;
  if (activity != nullptr) activity->push(command.sequence, stream);
  CUresult result = fault;
  if (fault == CUDA_SUCCESS) {
    const Performing performing(command.sequence);
    result = orders_.seen(command.issue(command.payload, stream));
  }
  if (activity != nullptr) activity->pop(command.sequence, stream);
  entry.program_result = result;
  entry.program_issued.store(1, std::memory_order_release);
  entry.program_issued.notify_all();
  shared_.command_log.wake();
  return result;
}

bool Session::read_back(const ReadBack& request) noexcept {
  if (!reads_back() || shared_.common.captures.load(std::memory_order_relaxed) > 0) return false;
  const uint64_t deadline = Landing::now_ns() + request.patience_ns;
  Landing& landing = shared_.landing;
  if (!landing.claim(deadline)) return false;
  const CUresult started =
      orders_.ask_dispatcher(EntryKind::read_back, [&](LogEntry& entry) { entry.read_back = &request; });
  const bool landed = started == CUDA_SUCCESS && landing.wait(deadline);
  if (landed && request.take != nullptr) request.take(request.user, landing.memory());
  landing.release();
  return landed;
}

}  // namespace reprise::replay

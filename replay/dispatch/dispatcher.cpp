#include "replay/dispatch/dispatcher.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "preload/base/address_space.h"
#include "preload/base/causes.h"
#include "preload/driver/device_observer.h"
#include "preload/driver/driver.h"
#include "preload/driver/own_memory.h"
#include "preload/footprint/chunk_size.h"
#include "preload/measure/own_link.h"
#include "replay/base/poll_pace.h"
#include "replay/base/threads.h"
#include "replay/memory/safety/choose.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kStagingBytes = 8u << 20;
constexpr unsigned long kTimerSlack = 1'000;  // ns
constexpr uint64_t kLookAtManagedNs = 10'000'000;

// Reserves the arena: as large as the driver allows.
CUresult reserve_arena(uint64_t chunk_bytes, Zone* zone) noexcept {
  // Two numbers of 32 bits side by side among a kernel's parameters are taken for an address where they look like one:
  // the upper halves of the first addresses are no round numbers, nor small ones, nor those of floats.
  constexpr CUdeviceptr kHint = uint64_t{0x6b5d} << 32;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (uint64_t bytes = kMostAddresses; bytes >= kLeastAddresses; bytes /= 2) {
    CUdeviceptr base = 0;
    result = driver().cuMemAddressReserve(&base, bytes, chunk_bytes, kHint, 0);
    if (result != CUDA_SUCCESS) continue;
    *zone = {base, bytes};
    return CUDA_SUCCESS;
  }
  return result;
}

// Chunks are of the size that the given plan was made for. Without one they are larger than need be where that many fit
// into the budget that what is smaller than half of one weighs little, and into what the device has: a budget may be
// far larger. Of a percentage that is not known yet. A context must be current.
uint64_t chunk_bytes_of(const BudgetRule& rule, uint64_t granularity, bool transfers_map) noexcept {
  if (rule.chunk_bytes != 0) return footprint::is_chunk(rule.chunk_bytes, granularity) ? rule.chunk_bytes : granularity;
  if (rule.bytes == 0 || rule.bytes == kAll) return granularity;
  size_t free_bytes = 0;
  size_t total = 0;
  if (driver().cuMemGetInfo(&free_bytes, &total) != CUDA_SUCCESS) return granularity;
  return footprint::chunk_bytes_for(granularity, std::min<uint64_t>(rule.bytes, free_bytes),
                                    footprint::chunks_in_a_run(transfers_map));
}

}  // namespace

Dispatcher::Dispatcher(Shared* shared) noexcept
    : shared_(*shared),
      pager_(&memory_),
      issuer_(shared, &memory_),
      on_demand_(shared, &memory_, &pager_, &issuer_),
      executor_(shared, &memory_, &pager_, &issuer_, &on_demand_.examiner) {}

CUresult Dispatcher::start(uint64_t host_cap, Measure measure, uint64_t held) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = shared_.device;
  size_t granularity = 0;
  CUresult result = driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  const BudgetRule rule = shared_.account.rule();
  const uint64_t chunk_bytes = chunk_bytes_of(rule, granularity, shared_.strict);
  if (result == CUDA_SUCCESS) {
    result = reserve_arena(chunk_bytes, &shared_.arena_all);
    if (result != CUDA_SUCCESS) say_short_of_addresses();
  }
  if (result == CUDA_SUCCESS) result = memory_.lanes.open(shared_.context);
  if (result != CUDA_SUCCESS) return result;
  memory_.lanes.watch_captures(&shared_.common.captures);
  shared_.chunk_bytes = chunk_bytes;
  shared_.granularity = granularity;
  shared_.arena = cut_arena(shared_.arena_all.base, shared_.arena_all.bytes, chunk_bytes);
  // What is alive, and the copies of strict safety, have mappings besides.
  shared_.addresses.open(shared_.arena, chunk_bytes, most_mappings() / 4 * 3);
  shared_.staging.open(kStagingBytes);
  shared_.host = &memory_.host;
  memory_.arena = shared_.arena;
  memory_.host.open(host_cap);
  memory_.host.start(shared_.context);
  memory_.chunks.open(shared_.device, chunk_bytes);
  memory_.blocks.open(chunk_bytes);
  memory_.mappings.open(&memory_.chunks, &memory_.lanes, shared_.device);
  memory_.mappings.allow_peers(shared_.common.peers[static_cast<size_t>(shared_.device)].load());
  size_t total = 0;
  if (shared_.strict) result = driver().cuDeviceTotalMem(&total, shared_.device);
  if (result == CUDA_SUCCESS) result = make_safety(&memory_, shared_.strict, total / chunk_bytes);
  if (result != CUDA_SUCCESS) return result;
  pager_.mappings.limit = most_mappings();
  pager_.hooks.before_fit = &Dispatcher::rise_with_working_set;
  pager_.hooks.user = this;
  pager_.hooks.before_shrink = &Dispatcher::look_at_peak;
  Counters& counters = shared_.counters;
  memory_.outside.open(held, counters.given_bytes.load() + shared_.account.graphs.bytes());
  counters.outside_bytes.store(held);
  shared_.account.around.hold(held);
  memory_.chunks.share(rule.bytes != 0 ? rule.bytes : UINT64_MAX, &shared_.account.around,
                       {&Dispatcher::look_at_new_chunk, this});
  const bool room = rule.bytes == 0 || held + chunk_bytes <= rule.bytes;  // to measure with
  // It makes a chunk to see whether NVML's figure is ours: now, as later there may be no room for one within the
  // budget.
  if (room) own_bytes_follow(shared_.device);
  if (measure == Measure::link && room) link_rates_ = measure_own_link(chunk_bytes);
  if (measure == Measure::planning && room) {
    memory_.chunks.set_limit(1);
    link_rates_ = measure_link_rates(memory_);
  }
  follow_budget();
  return start_thread("reprise", [this] { run(); }) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// A limit of the process counts for the driver's reservations, too, which take no memory.
void Dispatcher::say_short_of_addresses() noexcept {
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return;
  words<Cause::few_addresses>(kLeastAddresses >> 30, space.rlim_cur >> 20)
      .copy(start_problem_, sizeof start_problem_ - 1);
}

// Asking the driver is only worth it when the number of chunks may grow, or shall fall, or where what is held around us
// has changed. What of managed memory is on the device changes as kernels touch it.
bool Dispatcher::is_to_look() noexcept {
  if (memory_.chunks.bytes() != measured_at_bytes_ || shared_.counters.look_again.load()) return true;
  if (shared_.common.beside.of(shared_.device).figures(BesideKind::managed).count == 0) return false;
  return RunLogWriter::now_ns() - measured_at_ns_ > kLookAtManagedNs;
}

// The limit of chunks follows the peak of a percentage budget, and what device memory the program holds around us.
void Dispatcher::follow_budget() noexcept {
  if (executor_.active()) return;
  if (is_to_look()) {
    memory_.lanes.enter_own();  // the driver answers for the current context's device
    measured_at_bytes_ = memory_.chunks.bytes();
    measured_at_ns_ = RunLogWriter::now_ns();
    shared_.account.look_around(memory_);
  }
  uint64_t limit = chunk_limit(shared_.account.rule(), shared_.chunk_bytes, shared_.account.around.bytes(),
                               shared_.account.peak_beside_outside(peak_footprint_), pager_.largest_working_set());
  shared_.counters.budget_chunks.store(limit, std::memory_order_relaxed);
  // What a call cannot do without comes before what the driver may need.
  limit = std::min(limit, std::max(memory_.outside.room() / shared_.chunk_bytes, pager_.largest_working_set()));
  memory_.chunks.set_limit(limit);
  shared_.counters.room_bytes.store(memory_.outside.room(), std::memory_order_relaxed);
  shared_.counters.limit_chunks.store(limit, std::memory_order_relaxed);
  shared_.counters.largest_working_set.store(pager_.largest_working_set(), std::memory_order_relaxed);
}

void Dispatcher::rise_with_working_set(void* self, uint64_t) noexcept {
  static_cast<Dispatcher*>(self)->follow_budget();
}

void Dispatcher::look_at_peak(void* self) noexcept {
  auto& dispatcher = *static_cast<Dispatcher*>(self);
  dispatcher.memory_.lanes.enter_own();
  dispatcher.shared_.account.look_around(dispatcher.memory_);
}

// Pools of the program's give back, and the driver pages out, when no call shows it: what was held around the chunks
// when the driver was asked last may have gone since, and would be told as a part of the peak.
void Dispatcher::look_at_new_chunk(void* self, uint64_t at_once) noexcept {
  Account& account = static_cast<Dispatcher*>(self)->shared_.account;
  if (at_once <= account.counters.peak_used_bytes.load(std::memory_order_relaxed)) return;
  if (account.counters.most_held.load(std::memory_order_relaxed) == 0) return account.raise_peak(at_once);
  look_at_peak(self);
}

void Dispatcher::record_memory() noexcept {
  const uint64_t bytes = memory_.chunks.bytes();
  const uint64_t moved = memory_.traffic.offloaded_bytes + memory_.traffic.reloaded_bytes;
  const bool first_moved = moved > 0 && recorded_moved_bytes_ == 0;
  if (bytes == recorded_bytes_ && !first_moved) return;
  recorded_bytes_ = bytes;
  recorded_moved_bytes_ = moved;
  shared_.counters.device_bytes.store(bytes, std::memory_order_relaxed);
  // There may have been other memory before, of a context that has ended.
  const uint64_t peak = shared_.counters.peak_device_bytes.load(std::memory_order_relaxed);
  shared_.counters.peak_device_bytes.store(std::max(peak, memory_.chunks.peak_bytes()), std::memory_order_relaxed);
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::memory::line);
  line.add(run_log::memory::time_ns, RunLogWriter::now_ns())
      .add(run_log::memory::device_bytes, bytes)
      .add(run_log::memory::requested_bytes, shared_.counters.requested_bytes.load(std::memory_order_relaxed))
      .add(run_log::memory::moved_bytes, moved);
  shared_.run_log.write(line);
  if (bytes > peak || first_moved) shared_.run_log.flush();  // a program that is killed says no more
}

void Dispatcher::step_on_demand(LogEntry& entry) noexcept {
  // These make the driver load code or free memory: what the program holds around us may have changed.
  if (entry.kind == EntryKind::ordered || entry.kind == EntryKind::errand || entry.command.first_of_shape) {
    measured_at_bytes_ = UINT64_MAX;
  }
  peak_footprint_ = std::max(peak_footprint_, entry.peak_footprint);
  if (entry.kind == EntryKind::activate) {
    activate(entry);
  } else {
    on_demand_.perform(entry);
  }
  record_memory();
}

// A plan begins when all calls before are done. One whose thread sleeps may sleep for long, and so may a capture stay
// open: the plan's turn is later.
void Dispatcher::activate(LogEntry& entry) noexcept {
  on_demand_.program_calls.finish_granted();
  if (!on_demand_.program_calls.empty() || shared_.common.captures.load() > 0) {
    shared_.dispatcher_divergences.fetch_add(1, std::memory_order_release);
  } else {
    on_demand_.look_ahead.stop();
    follow_budget();  // a plan of an earlier run brings one with it
    executor_.activate(entry);
  }
  shared_.command_log.done(&entry);
}

void Dispatcher::run() noexcept {
  driver().cuCtxSetCurrent(shared_.context);
  prctl(PR_SET_TIMERSLACK, kTimerSlack);  // by default a short sleep takes four times as long
  // The driver calls of this thread belong to no stream capture of the program.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver().cuThreadExchangeStreamCaptureMode(&mode);
  PollPace pace;
  while (true) {
    const uint64_t tail = shared_.command_log.tail();
    issuer_.fault_report.look();
    if (executor_.active()) {
      if (executor_.step()) {
        pace.reset();
      } else {
        shared_.command_log.wait_for_work(tail, executor_.idle() ? 0 : pace.next());
      }
      continue;
    }
    on_demand_.program_calls.serve();
    // Entries that are not done may lie behind us: calls that program threads make. Some ahead are done: by a plan.
    next_ = std::max(next_, shared_.command_log.head());
    on_demand_.look(next_);
    if (next_ == tail) {
      const bool is_waiting = !on_demand_.program_calls.empty() || on_demand_.look_ahead.is_waiting();
      memory_.lanes.poll();
      shared_.staging.reclaim(memory_.lanes);
      shared_.command_log.wait_for_work(tail, is_waiting ? pace.next() : 0);
      continue;
    }
    pace.reset();
    LogEntry& entry = *shared_.command_log.at(next_++);
    const bool last = entry.kind == EntryKind::errand && entry.errand == Errand::close;
    if (!entry.done) step_on_demand(entry);
    if (last) break;
    shared_.staging.reclaim(memory_.lanes);
  }
  ended_.store(true, std::memory_order_release);  // the last that this thread does here
}

void Dispatcher::wait_ended() noexcept {
  const timespec nap{0, 100'000};
  while (!ended_.load(std::memory_order_acquire)) nanosleep(&nap, nullptr);
}

bool Dispatcher::wait_settled(uint64_t timeout_ms) noexcept {
  const uint64_t deadline = RunLogWriter::now_ns() + timeout_ms * 1'000'000;
  const timespec nap{0, 100'000};
  const CommandLog& log = shared_.command_log;
  shared_.command_log.enter_blocked();  // the thread that waits for the end counts as one that waits for the dispatcher
  while (log.settled() != log.tail() && RunLogWriter::now_ns() < deadline) nanosleep(&nap, nullptr);
  shared_.command_log.leave_blocked();
  return log.settled() == log.tail();
}

}  // namespace reprise::replay

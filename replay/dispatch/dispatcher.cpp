#include "replay/dispatch/dispatcher.h"

#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "preload/driver/driver.h"
#include "replay/base/threads.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kStagingBytes = 8u << 20;
constexpr uint64_t kPollInterval = 20'000;    // ns between looks at the device while something waits for it
constexpr unsigned long kTimerSlack = 1'000;  // ns

// The arena: as large as the system gives, at addresses that nothing else has.
CUresult reserve_arena(uint64_t granularity, Zone* zone) noexcept {
  constexpr CUdeviceptr kHint = 0x600000000000;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  for (uint64_t bytes = 8ull << 40; bytes >= (64ull << 30); bytes /= 2) {
    CUdeviceptr base = 0;
    result = driver().cuMemAddressReserve(&base, bytes, granularity, kHint, 0);
    if (result != CUDA_SUCCESS) continue;
    *zone = {base, bytes};
    return CUDA_SUCCESS;
  }
  return result;
}

}  // namespace

Dispatcher::Dispatcher(Shared* shared, BudgetRule rule) noexcept
    : shared_(*shared),
      rule_(rule),
      residency_(&memory_),
      issuer_(shared, &memory_),
      passive_(shared, &memory_, &residency_, &issuer_),
      planned_(shared, &memory_, &residency_, &issuer_) {}

CUresult Dispatcher::start(uint64_t host_cap, bool measure) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = shared_.device;
  size_t granularity = 0;
  CUresult result = driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result == CUDA_SUCCESS) result = reserve_arena(granularity, &shared_.arena_all);
  if (result == CUDA_SUCCESS) result = memory_.lanes.open(shared_.context);
  if (result != CUDA_SUCCESS) return result;
  shared_.granularity = granularity;
  shared_.arena = cut_arena(shared_.arena_all.base, shared_.arena_all.bytes, granularity);
  shared_.addresses.open(shared_.arena, granularity);
  shared_.staging.open(kStagingBytes);
  shared_.host = &memory_.host;
  memory_.arena = shared_.arena;
  memory_.host.open(host_cap);
  memory_.chunks.open(shared_.device, granularity);
  memory_.mappings.open(&memory_.chunks, &memory_.lanes, shared_.device);
  residency_.before_fit = &Dispatcher::rise_with_working_set;
  residency_.before_fit_user = this;
  outside_.open();
  if (measure) {
    memory_.chunks.set_limit(rule_.bytes != 0 ? rule_.bytes / granularity : 1);
    link_ = measure_link(memory_);
  }
  follow_budget();
  return start_thread("reprise", [this] { run(); }) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

// The limit follows the peak of a percentage budget, and what the program holds around us.
void Dispatcher::follow_budget() noexcept {
  if (planned_.active()) return;
  const uint64_t existing = memory_.chunks.bytes();
  // Asking the driver is only worth it when the number of chunks may grow.
  if (existing != measured_at_bytes_) {
    shared_.counters.outside_bytes.store(outside_.measure(existing), std::memory_order_relaxed);
    measured_at_bytes_ = existing;
  }
  const bool settled = shared_.budget_settled.load(std::memory_order_acquire);
  const uint64_t limit = chunk_limit(rule_, shared_.granularity, outside_.bytes(),
                                     shared_.counters.peak_requested_bytes.load(std::memory_order_relaxed),
                                     settled ? 0 : residency_.largest_working_set());
  memory_.chunks.set_limit(limit);
  shared_.counters.limit_chunks.store(limit, std::memory_order_relaxed);
  shared_.counters.largest_working_set.store(residency_.largest_working_set(), std::memory_order_relaxed);
}

void Dispatcher::rise_with_working_set(void* self, uint64_t) noexcept {
  static_cast<Dispatcher*>(self)->follow_budget();
}

void Dispatcher::note_memory() noexcept {
  const uint64_t bytes = memory_.chunks.bytes();
  if (bytes == noted_bytes_) return;
  noted_bytes_ = bytes;
  shared_.counters.device_bytes.store(bytes, std::memory_order_relaxed);
  shared_.counters.peak_device_bytes.store(memory_.chunks.peak_bytes(), std::memory_order_relaxed);
  if (!shared_.runlog.enabled()) return;
  RunLogLine line(run_log::memory::line);
  line.add(run_log::memory::time_ns, RunLogWriter::now_ns())
      .add(run_log::memory::device_bytes, bytes)
      .add(run_log::memory::requested_bytes, shared_.counters.requested_bytes.load(std::memory_order_relaxed));
  shared_.runlog.write(line);
}

void Dispatcher::step_passive(Entry& entry) noexcept {
  // These make the driver load code or give memory back: what the program holds around us may have changed.
  if (entry.kind == EntryKind::ordered || entry.command.first_of_shape) measured_at_bytes_ = UINT64_MAX;
  if (entry.kind == EntryKind::activate) {
    planned_.activate(shared_.schedule.load(std::memory_order_acquire), entry.iteration);
    shared_.log.done(&entry);
  } else {
    passive_.perform(entry);
  }
  note_memory();
}

void Dispatcher::run() noexcept {
  driver().cuCtxSetCurrent(shared_.context);
  prctl(PR_SET_TIMERSLACK, kTimerSlack);  // by default a sleep of kPollInterval takes four times as long
  // Nothing this thread does belongs to a capture of the program's.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  driver().cuThreadExchangeStreamCaptureMode(&mode);
  while (!stopping_.load(std::memory_order_acquire)) {
    const uint64_t tail = shared_.log.tail();
    if (planned_.active()) {
      if (!planned_.step()) shared_.log.wait_for_work(tail, planned_.idle() ? 0 : kPollInterval);
      continue;
    }
    if (shared_.log.head() == tail) {
      memory_.lanes.poll();
      shared_.staging.reclaim(memory_.lanes);
      shared_.log.wait_for_work(tail, 0);
      continue;
    }
    step_passive(*shared_.log.at(shared_.log.head()));
    shared_.staging.reclaim(memory_.lanes);
  }
  planned_.finish();
  stopped_.store(true, std::memory_order_release);
  while (true) pause();
}

void Dispatcher::stop(uint64_t timeout_ms) noexcept {
  const uint64_t deadline = RunLogWriter::now_ns() + timeout_ms * 1'000'000;
  const timespec nap{0, 100'000};
  shared_.log.enter_blocked();  // whoever waits for the end counts as a program thread that waits
  while (shared_.log.head() != shared_.log.tail() && RunLogWriter::now_ns() < deadline) nanosleep(&nap, nullptr);
  stopping_.store(true, std::memory_order_release);
  shared_.log.wake();
  while (!stopped_.load(std::memory_order_acquire) && RunLogWriter::now_ns() < deadline) nanosleep(&nap, nullptr);
  shared_.log.leave_blocked();
}

}  // namespace reprise::replay

#include "tools/device/engines/engine.h"

#include <algorithm>

#include "tools/device/engines/activity.h"
#include "tools/device/engines/device.h"

namespace reprise::sim {

void Engine::acquire() {
  std::unique_lock lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  turn_.wait(lock, [&] { return serving_ == ticket; });
}

void Engine::release() {
  bool waiting;
  {
    const std::lock_guard lock(mutex_);
    ++serving_;
    waiting = serving_ != next_ticket_;
  }
  if (waiting) turn_.notify_all();
}

uint64_t BusyClock::advance() {
  const uint64_t now = now_ns();
  const uint64_t passed = now - last_ns_;
  if (kernels_ > 0) times_.compute_ns += passed;
  if (copies_ > 0) times_.copy_ns += passed;
  if (kernels_ > 0 && copies_ > 0) times_.overlap_ns += passed;
  last_ns_ = now;
  return now;
}

void BusyClock::count(EngineKind kind, int change) {
  if (kind == EngineKind::compute) kernels_ += change;
  if (kind == EngineKind::host_to_device || kind == EngineKind::device_to_host) copies_ += change;
}

uint64_t BusyClock::begin(EngineKind kind) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = advance();
  count(kind, 1);
  return now;
}

uint64_t BusyClock::end(EngineKind kind) {
  const std::lock_guard lock(mutex_);
  const uint64_t now = advance();
  count(kind, -1);
  return now;
}

BusyTimes BusyClock::read() {
  const std::lock_guard lock(mutex_);
  advance();
  return times_;
}

Engine& Engines::of(EngineKind kind) {
  switch (kind) {
    case EngineKind::compute:
      return compute_;
    case EngineKind::host_to_device:
      return host_to_device_;
    case EngineKind::device_to_host:
      return device_to_host_;
    default:
      return within_;
  }
}

EngineUse::EngineUse(Device& device, EngineKind kind, const Execution& execution, Duration duration)
    : device_(device), engine_(device.engines.of(kind)), kind_(kind), execution_(execution), duration_(duration) {
  engine_.acquire();
  start_ns_ = begun_ns_ = device_.engines.clock.begin(kind_);
  if (!modelled_clock()) return;
  start_ns_ = std::max(execution_.time_ns, engine_.free_ns);
  begun_cpu_ns_ = thread_cpu_ns();
}

EngineUse::~EngineUse() {
  if (!modelled_clock()) sleep_until(begun_ns_ + duration_.ns);
  const uint64_t modelled_end_ns = modelled_clock() ? end_by_model() : 0;
  const uint64_t end_ns = device_.engines.clock.end(kind_);
  record_activity({execution_.activity, start_ns_, modelled_clock() ? modelled_end_ns : end_ns,
                   static_cast<uint32_t>(kind_), execution_.stream_id});
  engine_.release();
}

// Waits for the end of this use by the modelled clock; one that the host has missed already is counted.
uint64_t EngineUse::end_by_model() {
  const uint64_t now = now_ns();
  const uint64_t ns = duration_.exact ? duration_.ns : std::max(duration_.ns, now - begun_ns_);
  const uint64_t end_ns = start_ns_ + ns;
  device_.counters.modelled_ns += ns;
  device_.counters.host_ns += thread_cpu_ns() - begun_cpu_ns_;
  if (now > end_ns) {
    ++device_.counters.late_operations;
    uint64_t most = device_.counters.late_ns.load(std::memory_order_relaxed);
    while (most < now - end_ns && !device_.counters.late_ns.compare_exchange_weak(most, now - end_ns)) {
    }
  }
  nap_until(end_ns);
  engine_.free_ns = execution_.time_ns = end_ns;
  return end_ns;
}

}  // namespace reprise::sim

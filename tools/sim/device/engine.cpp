#include "tools/sim/device/engine.h"

#include <cerrno>
#include <ctime>

#include "tools/sim/device/activity.h"
#include "tools/sim/device/device.h"

namespace reprise::sim {

uint64_t now_ns() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void sleep_until(uint64_t deadline_ns) noexcept {
  // The kernel wakes a sleeper some 50 us late: sleep short of it, then spin.
  constexpr uint64_t kSlackNs = 60'000;
  if (deadline_ns > now_ns() + kSlackNs) {
    const uint64_t wake = deadline_ns - kSlackNs;
    timespec time;
    time.tv_sec = static_cast<time_t>(wake / 1'000'000'000);
    time.tv_nsec = static_cast<long>(wake % 1'000'000'000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
    }
  }
  while (now_ns() < deadline_ns) __builtin_ia32_pause();
}

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

EngineUse::EngineUse(Device& device, EngineKind kind, uint64_t activity, uint32_t stream)
    : device_(device), kind_(kind), activity_(activity), stream_(stream) {
  device_.engines.of(kind_).acquire();
  start_ns_ = device_.engines.clock.begin(kind_);
}

EngineUse::~EngineUse() {
  const uint64_t end_ns = device_.engines.clock.end(kind_);
  record_activity({activity_, start_ns_, end_ns, static_cast<uint32_t>(kind_), stream_});
  device_.engines.of(kind_).release();
}

}  // namespace reprise::sim

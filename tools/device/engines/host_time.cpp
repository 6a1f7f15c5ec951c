#include "tools/device/engines/host_time.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "preload/driver/sim_abi.h"
#include "tools/device/base/thread.h"
#include "tools/device/engines/clock.h"

namespace reprise::sim {
namespace {

// How long the calling thread has been ready and not running, since it began; 0 where the system does not say.
uint64_t read_delay() noexcept {
  const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[96] = {};
  const ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  unsigned long long ran = 0;
  unsigned long long delayed = 0;
  return count > 0 && std::sscanf(text, "%llu %llu", &ran, &delayed) == 2 ? delayed : 0;
}

// How often it has gone to sleep.
uint64_t count_sleeps() noexcept {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw);
}

// All of one moment: once more where the thread was kept from running in between.
void look(HostClock& clock) noexcept {
  constexpr uint64_t kMoment = 30'000;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const uint64_t begun = now_ns();
    clock.delayed_ns = read_delay();
    clock.sleeps = count_sleeps();
    clock.cpu_ns = thread_cpu_ns();
    clock.wall_ns = now_ns();
    if (clock.wall_ns - begun < kMoment) return;
  }
}

constinit std::atomic<uint64_t> lost{0};

// A thread that was stopped, or that never catches up, is not made up for without end.
void set_behind(HostClock& clock, int64_t ns) noexcept {
  constexpr int64_t kMostBehind = 100'000'000;
  clock.behind_ns = std::min(ns, kMostBehind);
  if (ns > kMostBehind) lost.fetch_add(static_cast<uint64_t>(ns - kMostBehind), std::memory_order_relaxed);
}

void set_time(uint64_t time_ns) noexcept {
  HostClock& clock = thread_state.clock;
  look(clock);
  set_behind(clock, static_cast<int64_t>(clock.wall_ns - time_ns));
}

// Has the calling thread done something else than to run since it was looked at last, but for what is not worth a look?
bool has_paused(const HostClock& clock) noexcept {
  constexpr uint64_t kShortest = 20'000;
  const uint64_t now = now_ns();
  return now - clock.wall_ns > thread_cpu_ns() - clock.cpu_ns + kShortest;
}

}  // namespace

uint64_t lost_host_time_ns() noexcept { return lost.load(std::memory_order_relaxed); }

uint64_t host_time_ns() noexcept {
  HostClock& clock = thread_state.clock;
  if (clock.wall_ns == 0) {
    look(clock);
  } else if (has_paused(clock)) {
    const HostClock before = clock;
    look(clock);
    // Where it slept, as long as others let it, it need not have been late for its delays.
    const bool slept = clock.sleeps != before.sleeps;
    const uint64_t delayed = std::min(clock.delayed_ns - before.delayed_ns, clock.wall_ns - before.wall_ns);
    if (!slept) set_behind(clock, before.behind_ns + static_cast<int64_t>(delayed));
  }
  return now_ns() - static_cast<uint64_t>(clock.behind_ns);
}

void host_waited(uint64_t begun_ns, uint64_t ended_ns) noexcept {
  const uint64_t now = host_time_ns();
  // It did not have to wait.
  if (ended_ns <= begun_ns && now - begun_ns < 10'000) return;
  set_time(std::max(begun_ns, ended_ns));
}

HostCall::HostCall() noexcept : start_ns_(modelled_clock() ? host_time_ns() : now_ns()) {}

void HostCall::takes(uint64_t ns) noexcept {
  if (ns == 0) return;
  if (!modelled_clock()) return sleep_until(start_ns_ + ns);
  // A nap ends some 50 us late.
  constexpr uint64_t kShortestNap = 50'000;
  const uint64_t end_ns = start_ns_ + ns;
  if (end_ns > now_ns() + kShortestNap) nap_until(end_ns);
  set_time(end_ns);
}

}  // namespace reprise::sim

uint64_t repriseSimHostTime() {
  using namespace reprise::sim;
  return modelled_clock() ? host_time_ns() : now_ns();
}

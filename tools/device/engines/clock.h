// Time on a simulated device. By default operations take what the host takes. With the modelled clock
// (REPRISE_SIM_MEMORY_RATE, REPRISE_SIM_KERNEL_TIMES) one that begins at s ends at s + d: s is when it was issued, or
// the modelled end of what it waits for on its stream, its engine and others' streams, and never when a thread of the
// host got to it; d is a matter of bytes. So a late thread delays nothing but itself: what comes behind it catches up.
// Callers: engines, streams, events, the operations, mapping.
#pragma once
#include <cstdint>
#include <string>

namespace reprise::sim {

uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC
uint64_t thread_cpu_ns() noexcept;
// Exact to the microsecond or so, for a spin of some 60.
void sleep_until(uint64_t deadline_ns) noexcept;
// Without a spin: what the modelled clock waits with, as lateness does not add up.
void nap_until(uint64_t deadline_ns) noexcept;
// The calling thread's naps end on time, not some 50 us behind it.
void nap_precisely() noexcept;

// Is the modelled clock on?
bool modelled_clock() noexcept;

// Of a use of an engine. Not exact: at least this, and what the host takes.
struct Duration {
  uint64_t ns = 0;
  bool exact = false;
};

// Of a kernel whose operands are `bytes`.
Duration kernel_duration(const std::string& name, uint64_t bytes);
// Of a memset or copy that reads and writes `bytes` of the device's memory.
Duration memory_duration(uint64_t bytes) noexcept;
// Of a copy of `bytes` over a link of this rate, 0: none.
Duration link_duration(uint64_t bytes, uint64_t rate, uint64_t latency_ns) noexcept;

// While it lives, what happens on a stream happens on the host, and takes what it takes.
class HostWork {
 public:
  explicit HostWork(uint64_t& time_ns) noexcept : time_ns_(time_ns), begun_ns_(modelled_clock() ? now_ns() : 0) {}
  ~HostWork() {
    if (modelled_clock()) time_ns_ += now_ns() - begun_ns_;
  }
  HostWork(const HostWork&) = delete;
  HostWork& operator=(const HostWork&) = delete;

 private:
  uint64_t& time_ns_;
  const uint64_t begun_ns_;
};

}  // namespace reprise::sim

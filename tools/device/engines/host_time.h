// The time of the program's threads by the modelled clock (device/clock.h), which is what their work is issued at. It
// goes on with the clock, but for what a busy machine costs: a wait ends when what it waits for ends by the modelled
// clock, not when the thread wakes up; mapping takes what is set; and while the thread was ready and did not run no
// time passed, unless it also slept for others since it was looked at last. So it falls behind the clock, the device's
// times follow it, and naps are shorter until all are level again. Callers, with the modelled clock alone: streams when
// work is issued or waited for, events, mapping.
#pragma once
#include <cstdint>

namespace reprise::sim {

// The calling thread's time.
uint64_t host_time_ns() noexcept;

// A wait for what ended at `ended_ns` is over; at its begin the time was `begun_ns`.
void host_waited(uint64_t begun_ns, uint64_t ended_ns) noexcept;
// The thread has seen what happened at `time_ns`.
inline void host_saw(uint64_t time_ns) noexcept { host_waited(host_time_ns(), time_ns); }

// What was more than can be made up for, of all threads: by so much do times depend on how busy the machine was.
uint64_t lost_host_time_ns() noexcept;

// The calling thread is busy with a call of the driver until takes() says how long it is: it naps, or, where that is
// too short for a nap, does so with what comes next. Without the modelled clock it spins.
class HostCall {
 public:
  HostCall() noexcept;
  void takes(uint64_t ns) noexcept;

 private:
  const uint64_t start_ns_;
};

}  // namespace reprise::sim

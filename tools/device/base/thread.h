// What the driver keeps per thread: the context stack, which default stream NULL means, capture mode, activity ids and
// the trap for bad accesses. Callers: every part of the driver. Plain data, so nothing runs when a thread ends, but for
// per-thread streams (streams/stream.cpp).
#pragma once
#include <csetjmp>
#include <cstdint>
#include <vector>

#include "tools/device/base/cuda_api.h"

namespace reprise::sim {

class Context;
struct ThreadStreams;

inline constexpr uint32_t kActivityDepth = 16;

// The time of a thread of the program by the modelled clock, as device/host_time.h keeps it.
struct HostClock {
  int64_t behind_ns = 0;  // the clock's time; below 0: ahead of it
  uint64_t wall_ns = 0;   // when it was looked at last: the clock, the thread's processor time, how long it had been
  uint64_t cpu_ns = 0;    // ready and not running, how often it had slept
  uint64_t delayed_ns = 0;
  uint64_t sleeps = 0;
};

struct ThreadState {
  Context* current = nullptr;
  std::vector<Context*>* below = nullptr;  // contexts under the current one, top last
  ThreadStreams* streams = nullptr;        // this thread's default streams
  uint64_t bad_address = 0;                // of the last access that was caught
  sigjmp_buf* trap = nullptr;              // where a bad access of the running kernel or copy continues
  uint64_t activity_ids[kActivityDepth] = {};
  uint32_t activity_depth = 0;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool per_thread_default = false;          // NULL means CU_STREAM_PER_THREAD in the call that runs now
  uint64_t call = 0;                        // of the program, that the shim performs now (preload/driver/sim_abi.h)
  const void* per_thread_caller = nullptr;  // ... and this is where that call came from
  bool in_callback = false;                 // a host function runs: it may not call the driver
  HostClock clock;
};

extern thread_local ThreadState thread_state __attribute__((tls_model("initial-exec")));

}  // namespace reprise::sim

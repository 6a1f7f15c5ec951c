// How fast bytes move between the device and pinned host memory: measured once, with one chunk or less, for the planner
// and the run log. Callers: replay/measure, with memory and streams that the replay has; own_link, for a recording.
#pragma once
#include <cuda.h>

#include <cstdint>

namespace reprise {

// Zero: not measured.
struct LinkRates {
#define REPRISE_MEASURED(field, ...) uint64_t field = 0;
#include "preload/trace/measured_keys.def"
#undef REPRISE_MEASURED
};

// A chunk on the device, and as much pinned host memory.
struct LinkEnds {
  CUdeviceptr device = 0;
  void* host = nullptr;
  uint64_t bytes = 0;
  CUstream to_device = nullptr;
  CUstream to_host = nullptr;
};

// Copies both ways, and what one of a few bytes takes: the fastest of several tries each. false: a call has failed, and
// copies may be under way.
bool measure_copies(const LinkEnds& ends, LinkRates* rates) noexcept;

}  // namespace reprise

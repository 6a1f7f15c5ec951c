// What the environment says about the simulated device (REPRISE_SIM_*). Read once, at cuInit. Callers: all of the
// driver.
#pragma once
#include <cstddef>
#include <cstdint>

namespace reprise::sim {

struct Settings {
  uint64_t memory_bytes = 8ull << 30;           // REPRISE_SIM_MEMORY: capacity of each device
  uint64_t granularity = 2ull << 20;            // REPRISE_SIM_GRANULARITY: of cuMemCreate and cuMemMap; a power of two
  uint64_t h2d_bytes_per_second = 16ull << 30;  // REPRISE_SIM_H2D; 0: as fast as memcpy
  uint64_t d2h_bytes_per_second = 16ull << 30;  // REPRISE_SIM_D2H; 0: as fast as memcpy
  uint64_t latency_ns = 0;                      // REPRISE_SIM_LATENCY (microseconds): of each host copy
  uint64_t context_bytes = 0;                   // REPRISE_SIM_CONTEXT_BYTES: device memory that a context takes
  uint32_t devices = 1;                         // REPRISE_SIM_DEVICES
  uint32_t queue_depth = 1024;                  // REPRISE_SIM_QUEUE_DEPTH: commands a stream holds before calls block
  bool poison = true;                           // REPRISE_SIM_POISON=0: fresh device memory is zero
  bool strict = false;                          // REPRISE_SIM_STRICT=1: a call that nobody wrote aborts the process
  const char* stats_path = nullptr;             // REPRISE_SIM_STATS: counters as JSON at exit
};

// The settings; reads the environment on the first call. A value that cannot be read is reported on stderr, and its
// default holds.
const Settings& settings() noexcept;

// "12GiB", "800MiB", "4096", "1.5GB"; false when it is none.
bool parse_size(const char* text, uint64_t* bytes) noexcept;

}  // namespace reprise::sim

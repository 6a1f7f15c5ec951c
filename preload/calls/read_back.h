// Bytes of device memory as the work submitted so far leaves them: what a hook asks its handler for when a buffer may
// hold addresses that a kernel wrote. Counters of it for the run log. Callers: preload/access/looks; both handlers.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>

namespace reprise {

struct ReadBackPart {
  uint64_t allocation;  // id in the Allocations map
  CUdeviceptr base;     // where the allocation starts
  uint64_t offset;
  uint64_t bytes;
};

struct ReadBack {
  static constexpr uint64_t kMostBytes = 1 << 20;  // of all parts

  const ReadBackPart* parts = nullptr;
  uint32_t count = 0;
  // Waits for all work submitted so far, not only for that on the parts: for bytes of the host, which work writes
  // without naming them.
  bool after_everything = false;
  uint64_t patience_ns = 0;  // of waiting for the device; work that never ends costs this and no more
  // Gets the bytes of the parts, one behind the other. Called once, on the asking thread, unless the answer is false.
  void (*take)(void* user, const unsigned char* bytes) = nullptr;
  void* user = nullptr;
};

// What the run log says of it (keys of its last line).
struct LookCounters {
  std::atomic<uint64_t> buffers{0};      // that were scanned
  std::atomic<uint64_t> bytes{0};        // of them
  std::atomic<uint64_t> tables{0};       // in which addresses were found
  std::atomic<uint64_t> not_scanned{0};  // that should have been, and could not be read
};
inline constinit LookCounters look_counters;

}  // namespace reprise

// How a twin runs a grid: blocks one after the other, the threads of a block in one plain loop until the first of them
// waits, from then on as fibers. Caller: cuda_host.h. A library of its own, which every twin library is linked with.
#pragma once
#include <cstdint>

#include "tools/device/twins/twin.h"

#define REPRISE_TWIN_API __attribute__((visibility("default")))

namespace reprise::sim::twin {

struct Index {
  unsigned x, y, z;
};

// What threadIdx and its like read. In static thread-local storage, so that an access is one instruction.
struct Indices {
  Index thread;
  Index block;
  Index block_extent;
  Index grid_extent;
};

// Which threads of the current block have not started yet.
struct Schedule {
  uint32_t remaining;
  Index next;
  bool fibers;  // a thread of this block has waited: ends are counted from now on
};

extern REPRISE_TWIN_API __attribute__((tls_model("initial-exec"))) __thread Indices indices;
extern REPRISE_TWIN_API __attribute__((tls_model("initial-exec"))) __thread Schedule schedule;

// Begins the next thread of the block; false when all have begun.
inline bool next_thread() {
  Schedule& now = schedule;
  if (now.remaining == 0) return false;
  --now.remaining;
  indices.thread = now.next;
  if (++now.next.x == indices.block_extent.x) {
    now.next.x = 0;
    if (++now.next.y == indices.block_extent.y) {
      now.next.y = 0;
      ++now.next.z;
    }
  }
  return true;
}

// Counts the end of a thread of a block that uses fibers.
REPRISE_TWIN_API void end_thread();
inline void thread_ended() {
  if (schedule.fibers) [[unlikely]] {
    end_thread();
  }
}

// Runs the grid; `threads` runs threads of the current block until next_thread() says that there is none.
using ThreadLoop = void (*)(const void* arguments);
REPRISE_TWIN_API void run_grid(const TwinLaunch& launch, ThreadLoop threads, const void* arguments);

// __syncthreads: returns when every thread of the block that has not ended is here.
REPRISE_TWIN_API void block_barrier();

// Waits for the lanes of `mask` that have not ended, then: the value that lane `source` brought (one's own where it
// brought none), or the mask of lanes that brought a value other than zero.
REPRISE_TWIN_API uint64_t warp_exchange(uint32_t mask, uint64_t value, uint32_t source);
REPRISE_TWIN_API uint32_t warp_ballot(uint32_t mask, bool predicate);

// Index of the calling thread in its block and in its warp.
inline uint32_t thread_rank() {
  const Index& at = indices.thread;
  const Index& extent = indices.block_extent;
  return (at.z * extent.y + at.y) * extent.x + at.x;
}
inline uint32_t lane() { return thread_rank() % 32; }

}  // namespace reprise::sim::twin

#include "tools/device/twins/block.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <vector>

#include "tools/device/twins/fiber.h"

namespace reprise::sim::twin {

__thread Indices indices;
__thread Schedule schedule;

namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kMostThreads = 1024;

struct Fiber {
  FiberStack* stack;  // nullptr: the calling thread's own
  void* saved;
  Index thread;
};

struct Warp {
  uint32_t alive;    // lanes that have not ended
  uint32_t arrived;  // lanes that wait below
  struct Lane {
    uint32_t mask;
    uint32_t source;
    uint64_t value;
    uint64_t result;
    uint32_t ballot;
    Fiber* fiber;
  } lanes[kLanes];
};

// A first-in first-out list of at most so many fibers as a block has threads.
class Queue {
 public:
  bool empty() const { return first_ == last_; }
  void push(Fiber* fiber) { items_[last_++ % kSize] = fiber; }
  Fiber* pop() { return items_[first_++ % kSize]; }
  void clear() { first_ = last_ = 0; }

 private:
  static constexpr uint32_t kSize = 2 * kMostThreads;
  Fiber* items_[kSize];
  uint32_t first_ = 0;
  uint32_t last_ = 0;
};

// The block that an operating system's thread runs, once a thread of it waits. One object per such thread, never freed.
class Block {
 public:
  void prepare(ThreadLoop threads, const void* arguments) {
    threads_ = threads;
    arguments_ = arguments;
  }

  // The first wait of a block: the threads before the current one have ended, without being counted.
  void activate() {
    if (!clean_) rebuild();
    clean_ = false;
    const Index& extent = indices.block_extent;
    const uint32_t count = extent.x * extent.y * extent.z;
    const uint32_t rank = thread_rank();
    alive_ = count - rank;
    for (uint32_t i = 0; i * kLanes < count; ++i) {
      Warp& warp = warps_[i];
      const uint32_t lanes = std::min(count - i * kLanes, kLanes);
      const uint32_t ended = std::clamp<int64_t>(int64_t{rank} - i * kLanes, 0, lanes);
      const auto below = [](uint32_t n) { return n == kLanes ? ~0u : (1u << n) - 1; };
      warp.alive = below(lanes) & ~below(ended);
      warp.arrived = 0;
    }
    current_ = &main_;
    main_joins_ = false;
    schedule.fibers = true;
  }

  void barrier() {
    if (waiting_.size() + 1 == alive_) {
      release_block();
      return;
    }
    waiting_.push_back(current_);
    suspend();
  }

  Warp::Lane& warp_wait(uint32_t mask, uint64_t value, uint32_t source) {
    Warp& warp = warps_[thread_rank() / kLanes];
    const uint32_t own = lane();
    warp.lanes[own] = {mask | (1u << own), source, value, 0, 0, current_};
    warp.arrived |= 1u << own;
    if (!release_warp(warp, own, current_)) suspend();
    return warp.lanes[own];
  }

  void end() {
    --alive_;
    Warp& warp = warps_[thread_rank() / kLanes];
    warp.alive &= ~(1u << lane());
    // Lanes that waited for this thread wait no longer.
    for (uint32_t left = warp.arrived; left != 0; left &= left - 1) {
      const auto waiting = static_cast<uint32_t>(std::countr_zero(left));
      if ((warp.arrived >> waiting & 1) != 0) release_warp(warp, waiting, nullptr);
    }
    if (alive_ != 0 && waiting_.size() == alive_) release_block();
  }

  // The calling thread's own loop is through: let the fibers finish.
  void join() {
    main_joins_ = true;
    while (alive_ != 0) switch_to(next_ready());
    clean_ = true;
  }

 private:
  void release_block() {
    for (Fiber* fiber : waiting_) ready_.push(fiber);
    waiting_.clear();
  }

  // Hands out results if every living lane of `lane`'s mask is there. `running` needs no wake-up.
  bool release_warp(Warp& warp, uint32_t asked, const Fiber* running) {
    const uint32_t mask = warp.lanes[asked].mask & warp.alive;
    if ((mask & ~warp.arrived) != 0) return false;
    uint32_t ballot = 0;
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      const auto at = static_cast<uint32_t>(std::countr_zero(left));
      if (warp.lanes[at].value != 0) ballot |= 1u << at;
    }
    for (uint32_t left = mask; left != 0; left &= left - 1) {
      Warp::Lane& at = warp.lanes[std::countr_zero(left)];
      const bool brought = (mask >> (at.source % kLanes) & 1) != 0;
      at.result = brought ? warp.lanes[at.source % kLanes].value : at.value;
      at.ballot = ballot;
      if (at.fiber != running) ready_.push(at.fiber);
    }
    warp.arrived &= ~mask;
    return true;
  }

  // Runs others until the calling thread is ready again.
  void suspend() {
    current_->thread = indices.thread;
    switch_to(next_ready());
  }

  // Threads that can go on come before threads that have not begun: fewer stacks are in use then.
  Fiber* next_ready() {
    if (!ready_.empty()) return ready_.pop();
    if (schedule.remaining != 0) return take_idle();
    if (main_joins_ && current_ != &main_ && alive_ == 0) return &main_;
    std::fputs("reprise: a kernel's threads wait for each other at different barriers\n", stderr);
    std::abort();
  }

  void switch_to(Fiber* next) {
    Fiber* self = current_;
    if (next == self) return;
    current_ = next;
    indices.thread = next->thread;
    reprise_twin_switch(&self->saved, next->saved);
  }

  Fiber* take_idle() {
    if (idle_.empty()) {
      fibers_.push_back({new FiberStack, nullptr, {}});
      fibers_.back().saved = fibers_.back().stack->begin(&fiber_entry);
      return &fibers_.back();
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  // The block before was left in the middle (a kernel that faulted): every fiber begins anew.
  void rebuild() {
    ready_.clear();
    waiting_.clear();
    idle_.clear();
    for (Fiber& fiber : fibers_) {
      fiber.saved = fiber.stack->begin(&fiber_entry);
      idle_.push_back(&fiber);
    }
  }

  static void fiber_entry();

  ThreadLoop threads_ = nullptr;
  const void* arguments_ = nullptr;
  uint32_t alive_ = 0;
  bool main_joins_ = false;
  bool clean_ = true;
  Fiber main_{};
  Fiber* current_ = nullptr;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;
  std::vector<Fiber*> waiting_;  // at the block's barrier
  Queue ready_;
  Warp warps_[kMostThreads / kLanes];
};

__attribute__((tls_model("initial-exec"))) __thread Block* this_block = nullptr;

// Blocks, and the stacks that they have, serve a later thread when theirs has ended.
struct Unused {
  std::mutex mutex;
  std::vector<Block*> blocks;
};
Unused& unused() {
  static Unused& all = *new Unused;
  return all;
}
struct Lease {
  Lease() {
    const std::lock_guard lock(unused().mutex);
    if (unused().blocks.empty()) unused().blocks.push_back(new Block);
    this_block = unused().blocks.back();
    unused().blocks.pop_back();
  }
  ~Lease() {
    const std::lock_guard lock(unused().mutex);
    unused().blocks.push_back(this_block);
    this_block = nullptr;
  }
};

Block& block() {
  if (this_block == nullptr) {
    static thread_local const Lease lease;
    static_cast<void>(lease);
  }
  return *this_block;
}

void Block::fiber_entry() {
  Block& self = *this_block;
  for (;;) {
    self.threads_(self.arguments_);
    self.idle_.push_back(self.current_);
    self.switch_to(self.next_ready());
  }
}

Block& active_block() {
  Block& self = block();
  if (!schedule.fibers) self.activate();
  return self;
}

void run_block(ThreadLoop threads, const void* arguments, uint32_t count) {
  schedule = {count, {0, 0, 0}, false};
  threads(arguments);
  if (schedule.fibers) this_block->join();
}

}  // namespace

void run_grid(const TwinLaunch& launch, ThreadLoop threads, const void* arguments) {
  indices.block_extent = {launch.block[0], launch.block[1], launch.block[2]};
  indices.grid_extent = {launch.grid[0], launch.grid[1], launch.grid[2]};
  const uint64_t count = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (count == 0 || count > kMostThreads) return;  // the driver refuses such a launch
  block().prepare(threads, arguments);
  for (unsigned z = 0; z < launch.grid[2]; ++z) {
    for (unsigned y = 0; y < launch.grid[1]; ++y) {
      for (unsigned x = 0; x < launch.grid[0]; ++x) {
        indices.block = {x, y, z};
        run_block(threads, arguments, static_cast<uint32_t>(count));
      }
    }
  }
}

void end_thread() { this_block->end(); }

void block_barrier() {
  const Index& extent = indices.block_extent;
  if (extent.x * extent.y * extent.z == 1) return;
  active_block().barrier();
}

uint64_t warp_exchange(uint32_t mask, uint64_t value, uint32_t source) {
  return active_block().warp_wait(mask, value, source).result;
}

uint32_t warp_ballot(uint32_t mask, bool predicate) {
  return active_block().warp_wait(mask, predicate ? 1 : 0, lane()).ballot;
}

}  // namespace reprise::sim::twin

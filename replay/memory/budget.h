// How much device memory there may be right now. A fixed budget is one number less what the program holds around us; a
// percentage of the program's own peak rises with what is known of that peak (footprint.h, and what it holds around
// us). Callers: the dispatcher, the enforcer.
#pragma once
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "preload/driver/taken.h"

namespace reprise::replay {

inline constexpr uint64_t kAll = uint64_t{1} << 60;  // as a fixed budget: all that there is

struct BudgetRule {
  uint64_t bytes = 0;        // fixed budget; 0: percentage
  double fraction = 0.0;     // of the peak that the program would have without us
  uint64_t chunk_bytes = 0;  // that a plan was made for; 0: no plan was given
  uint64_t least_bytes = 0;  // a percentage is never less: what the smallest plan takes, once that is known
};

// The rule, pure: how many chunks may exist. `outside_bytes` is device memory that is not ours to manage;
// `peak_bytes` is the footprint's so far, `largest_working_set` (chunks) what one call so far could not do without: a
// percentage is never less (decision 0001).
// A percentage that follows a growing peak stays below the final limit whenever that is feasible at all: both terms do.
uint64_t chunk_limit(const BudgetRule& rule, uint64_t chunk_bytes, uint64_t outside_bytes, uint64_t peak_bytes,
                     uint64_t largest_working_set) noexcept;

// The budget in bytes as it is known now, for the planner and for messages.
uint64_t budget_in_bytes(const BudgetRule& rule, uint64_t peak_bytes, uint64_t outside_bytes) noexcept;

// Device memory that the program holds around Reprise, from before the first managed allocation on: contexts, module
// images, pools, other allocations. A device tells only what all processes hold, so of what more is held than at open()
// as much counts as this program has taken: what it was given by calls that hooks see, and what it took by calls by
// which the driver takes memory (taken.h). What is more than these explain is this program's where NVML says so
// (own_memory.h). Where nobody tells whose memory is, and others are seen to take or give back some meanwhile, of each
// call only as much counts as one may well take. The driver is asked by any thread; what it said is kept under a lock.
class Outside {
 public:
  // Takes what is free now as the starting point; the program holds `held` already, and hooks saw `given` so far. A
  // context must be current.
  void open(uint64_t held = 0, uint64_t given = 0) noexcept;

  // What the driver says now; `free` is 0: it does not.
  struct Answer {
    uint64_t free = 0;
    uint64_t total = 0;
  };
  static Answer ask() noexcept;
  // `ours` are the bytes that Reprise has created since open(), `given` those that hooks saw given or taken, ever.
  uint64_t take(const Answer& answer, uint64_t ours, uint64_t given) noexcept;
  uint64_t measure(uint64_t ours, uint64_t given) noexcept { return take(ask(), ours, given); }
  uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // How much of the device ours may be, so that the driver finds memory for what no call of ours can make room for:
  // lazily loaded code, local memory, graphs.
  uint64_t room() const noexcept { return room_.load(std::memory_order_relaxed); }
  uint64_t headroom() const noexcept { return headroom_; }
  // As of measure(): the device's memory, and what of it is neither ours nor this program's: other programs', the
  // driver's. 0: not known.
  uint64_t total() const noexcept { return total_.load(std::memory_order_relaxed); }
  uint64_t elsewhere() const noexcept { return elsewhere_.load(std::memory_order_relaxed); }
  // Others were seen to take or give back memory: then part of what counted as the program's may have been theirs.
  bool others() const noexcept { return others_.load(std::memory_order_relaxed); }

  // Around nothing but a call that may be the first launch of its kernel, so that the driver loads code for it.
  void before_call() noexcept;
  void after_call() noexcept;

 private:
  uint64_t settle(const Answer& answer, uint64_t ours, uint64_t bytes) noexcept;

  std::mutex mutex_;
  struct AtStart {
    uint64_t held = 0;
    uint64_t given = 0;
    uint64_t free = 0;
    std::optional<uint64_t> own = {};  // as NVML tells it
  } start_;
  struct AskedNvml {
    uint64_t about = 0;  // so many bytes that nothing explains, when ours were so many
    uint64_t with_ours = 0;
    uint64_t told = 0;  // ... and the answer
  } asked_;             // NVML, last
  CUdevice device_ = 0;
  BeforeCall before_;
  uint64_t by_calls_ = 0;       // taken
  uint64_t beside_others_ = 0;  // ... at most kMostBesideOthers by each of which nobody tells whose it is
  uint64_t headroom_ = 0;
  std::atomic<bool> others_{false};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> total_{0};
  std::atomic<uint64_t> elsewhere_{0};
  std::atomic<uint64_t> room_{UINT64_MAX};
};

}  // namespace reprise::replay

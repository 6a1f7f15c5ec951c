// What one planned iteration did, for the run log: wall time, bytes, stalls, and device times of a few sampled ones.
// Caller: the plan executor.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/plan/plan_index.h"

namespace reprise::replay {

class Stopwatch {
 public:
  void open(Shared* shared, ManagedMemory* memory, const PlanIndex* plan_index, uint32_t plan) noexcept;
  // The program's first call of the iteration was taken in; the iteration before is over.
  void begin(uint64_t iteration) noexcept;
  // The iteration's last call was taken in: if the plan ends now, it was a whole one. Transfers of the next one may
  // begin before its first call.
  void last_call() noexcept;
  // The plan has ended. Where that was in the middle of an iteration, what was measured since begin() is dropped.
  void end() noexcept;

  // The device had submitted work but nothing to run for `ns`.
  void stalled(uint64_t ns) noexcept { stall_ns_ += ns; }
  // Should the iteration's driver calls be bracketed for the activity source?
  bool sampled(uint64_t iteration) const noexcept { return sample_pending_ && iteration == sample_iteration_; }

  static uint64_t id_of(uint64_t iteration, uint32_t vertex) noexcept {
    return kPlanBit | (iteration & 0x7fffff) << 32 | vertex;
  }
  static constexpr uint64_t kPlanBit = uint64_t{1} << 63;

 private:
  struct SampledInterval {
    uint64_t iteration;
    uint32_t vertex;
    uint64_t start_ns;
    uint64_t end_ns;
  };
  static void keep(void* self, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept;
  void end_iteration(uint64_t now_ns) noexcept;
  void sample(uint64_t iteration) noexcept;
  void report_sample() noexcept;

  Shared* shared_ = nullptr;
  ManagedMemory* memory_ = nullptr;
  const PlanIndex* plan_index_ = nullptr;
  uint32_t plan_ = 0;     // its number
  uint64_t planned_ = 0;  // iterations begun since the program started
  uint64_t iteration_ = 0;
  uint64_t began_ns_ = 0;  // 0: none runs
  Traffic at_begin_;
  uint64_t calls_at_begin_ = 0;
  uint64_t stall_ns_ = 0;
  bool whole_ = false;
  bool sample_pending_ = false;
  uint64_t sample_iteration_ = 0;
  uint64_t sample_age_ = 0;  // iterations that have begun since
  bool missed_ = false;      // the last one that was to be sampled was not whole: the next one is
  std::vector<SampledInterval> intervals_;
};

// Length of the union of intervals, and of the intersection of two unions. Exposed for tests.
using Spans = std::vector<std::pair<uint64_t, uint64_t>>;
uint64_t busy_ns(Spans spans);
uint64_t both_busy_ns(const Spans& first, const Spans& second);

}  // namespace reprise::replay

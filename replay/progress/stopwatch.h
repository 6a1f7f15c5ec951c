// What one planned iteration did, for the run log: wall time, bytes, stalls, and device times of a few sampled ones
// (iteration_sample.h). Caller: the plan executor.
#pragma once
#include <cstdint>

#include "replay/issue/shared.h"
#include "replay/memory/memory.h"
#include "replay/plan/plan_index.h"
#include "replay/progress/iteration_sample.h"

namespace reprise::replay {

class Stopwatch {
 public:
  void open(Shared* shared, ManagedMemory* memory, const PlanIndex* plan_index, uint32_t plan) noexcept;
  // The program's first call of the iteration was taken in; the iteration before is over.
  void begin(uint64_t iteration) noexcept;
  // The iteration's last call was taken in: if the plan ends now, it was a whole one. Transfers of the next one may
  // begin before its first call.
  void last_call() noexcept;
  // A part of the iteration is left out: it is none to measure.
  void part_left_out() noexcept { sample_.end(iteration_, false); }
  // The plan has ended. Where that was in the middle of an iteration, what was measured since begin() is dropped.
  void end() noexcept;

  // The device had submitted work but nothing to run for `ns`.
  void stalled(uint64_t ns) noexcept { stall_ns_ += ns; }
  const IterationSample& sample() const noexcept { return sample_; }

 private:
  void end_iteration(uint64_t now_ns) noexcept;

  Shared* shared_ = nullptr;
  ManagedMemory* memory_ = nullptr;
  uint32_t plan_ = 0;     // its number
  uint64_t planned_ = 0;  // iterations begun since the program started
  uint64_t iteration_ = 0;
  uint64_t began_ns_ = 0;  // 0: none runs
  Traffic at_begin_;
  uint64_t calls_at_begin_ = 0;
  uint64_t stall_ns_ = 0;
  bool whole_ = false;
  IterationSample sample_;
};

}  // namespace reprise::replay

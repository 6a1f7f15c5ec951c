#include "replay/progress/stopwatch.h"

namespace reprise::replay {

void Stopwatch::open(Shared* shared, ManagedMemory* memory, const PlanIndex* plan_index, uint32_t plan) noexcept {
  shared_ = shared;
  memory_ = memory;
  plan_ = plan;
  sample_.open(shared, plan_index, plan);
}

void Stopwatch::begin(uint64_t iteration) noexcept {
  const uint64_t now = RunLogWriter::now_ns();
  if (began_ns_ != 0) end_iteration(now);
  iteration_ = iteration;
  began_ns_ = now;
  whole_ = false;
  at_begin_ = memory_->traffic;
  calls_at_begin_ = memory_->mappings.driver_calls();
  stall_ns_ = 0;
  ++planned_;
  sample_.begun();
}

void Stopwatch::last_call() noexcept {
  whole_ = true;
  sample_.look_at(iteration_ + 1, planned_ + 1);
}

void Stopwatch::end_iteration(uint64_t now_ns) noexcept {
  shared_->counters.iterations_planned.fetch_add(1, std::memory_order_relaxed);
  const Traffic& now = memory_->traffic;
  RunLogLine line(run_log::iteration::line);
  line.add(run_log::iteration::index, iteration_)
      .add(run_log::iteration::mode, run_log::iteration::planned)
      .add(run_log::iteration::plan, uint64_t{plan_})
      .add(run_log::iteration::wall_ns, now_ns - began_ns_)
      .add(run_log::iteration::offload_bytes, now.offloaded_bytes - at_begin_.offloaded_bytes)
      .add(run_log::iteration::reload_bytes, now.reloaded_bytes - at_begin_.reloaded_bytes)
      .add(run_log::iteration::spared_bytes, now.spared_bytes - at_begin_.spared_bytes)
      .add(run_log::iteration::dropped_bytes, now.dropped_bytes - at_begin_.dropped_bytes)
      .add(run_log::iteration::repeated_launches, now.repeated_launches - at_begin_.repeated_launches)
      .add(run_log::iteration::stall_ns, stall_ns_)
      .add(run_log::iteration::vmm_calls, memory_->mappings.driver_calls() - calls_at_begin_);
  shared_->run_log.write(line);
  shared_->run_log.flush();
}

void Stopwatch::end() noexcept {
  if (whole_ && began_ns_ != 0) end_iteration(RunLogWriter::now_ns());
  sample_.end(iteration_, whole_);
  whole_ = false;
  began_ns_ = 0;
}

}  // namespace reprise::replay

#include "replay/dispatch/stopwatch.h"

#include <algorithm>

namespace reprise::replay {
namespace {

Spans merged(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans result;
  for (const auto& [start, end] : spans) {
    if (!result.empty() && start <= result.back().second) {
      result.back().second = std::max(result.back().second, end);
    } else if (start < end) {
      result.emplace_back(start, end);
    }
  }
  return result;
}

uint64_t length(const Spans& spans) {
  uint64_t total = 0;
  for (const auto& [start, end] : spans) total += end - start;
  return total;
}

// Which planned iterations are looked at closely: an early one, the next where that was missed, and more and more
// rarely others, as one alone may be an outlier.
bool wanted(uint64_t planned) {
  const bool doubled = planned >= 8 && (planned & (planned - 1)) == 0;
  return planned == 3 || planned == 4 || doubled || planned % 64 == 0;
}

}  // namespace

uint64_t busy_ns(Spans spans) { return length(merged(std::move(spans))); }

uint64_t both_busy_ns(const Spans& first, const Spans& second) {
  Spans either = first;
  either.insert(either.end(), second.begin(), second.end());
  return busy_ns(first) + busy_ns(second) - busy_ns(std::move(either));
}

void Stopwatch::open(Shared* shared, ManagedMemory* memory, const PlanIndex* plan_index, uint32_t plan) noexcept {
  shared_ = shared;
  memory_ = memory;
  plan_index_ = plan_index;
  plan_ = plan;
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
  // Its last work is complete when the one after the next begins.
  if (sample_pending_ && ++sample_age_ >= 3) report_sample();
}

void Stopwatch::last_call() noexcept {
  whole_ = true;
  if (!sample_pending_ && (wanted(planned_ + 1) || missed_)) sample(iteration_ + 1);
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
  if (sample_iteration_ == iteration_ && !whole_) sample_age_ = 0;  // a part would pass for a whole one
  whole_ = false;
  began_ns_ = 0;
  if (sample_pending_) report_sample();
}

void Stopwatch::sample(uint64_t iteration) noexcept {
  ActivitySource* const activity = shared_->common.activity.load(std::memory_order_acquire);
  if (activity == nullptr || !shared_->run_log.enabled() || shared_->common.recording.load()) return;
  // Before the source is looked at, which others may stop; another device's sample may be under way.
  if (shared_->common.sampling.exchange(true, std::memory_order_acq_rel)) return;
  if (!activity->running() && !activity->start())
    return shared_->common.sampling.store(false, std::memory_order_release);
  sample_pending_ = true;
  sample_iteration_ = iteration;
  sample_age_ = 0;
}

void Stopwatch::keep(void* self, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept {
  if ((id & kPlanBit) == 0) return;
  static_cast<Stopwatch*>(self)->intervals_.push_back(
      {(id >> 32) & 0x7fffff, static_cast<uint32_t>(id), start_ns, end_ns});
}

void Stopwatch::report_sample() noexcept {
  sample_pending_ = false;
  shared_->common.sampling.store(false, std::memory_order_release);
  ActivitySource* const activity = shared_->common.activity.load(std::memory_order_acquire);
  // A program thread that collects for the recording takes these times, too: then the sample is lost.
  if (activity == nullptr || shared_->common.collecting.exchange(true, std::memory_order_acquire)) return;
  // Stopped first: CUPTI keeps a buffer to itself that holds records of work that is not complete, and the next
  // iteration runs; on an H200 samples came one too late, and were empty.
  if (!shared_->common.recording.load(std::memory_order_relaxed)) activity->stop();
  activity->collect(&Stopwatch::keep, this);
  shared_->common.collecting.store(false, std::memory_order_release);
  missed_ = sample_age_ == 0;  // it has not begun, or was left before its end
  if (missed_) return intervals_.clear();
  if (intervals_.empty()) return;  // as in replays on an H200: no record said what it was of
  static const char* const engines[] = {"compute", "h2d", "d2h", "compute"};
  Spans compute;
  Spans copies;
  for (const SampledInterval& interval : intervals_) {
    if (interval.iteration != (sample_iteration_ & 0x7fffff) || interval.vertex >= plan_index_->lanes.size()) continue;
    const LaneKind kind = plan_index_->lanes[interval.vertex];
    (kind == LaneKind::compute ? compute : copies).emplace_back(interval.start_ns, interval.end_ns);
    RunLogLine line(run_log::activity::line);
    line.add(run_log::activity::iteration, sample_iteration_)
        .add(run_log::activity::plan, uint64_t{plan_})
        .add(run_log::activity::vertex, interval.vertex)
        .add(run_log::activity::engine, std::string(engines[static_cast<int>(kind)]))
        .add(run_log::activity::start_ns, interval.start_ns)
        .add(run_log::activity::end_ns, interval.end_ns);
    shared_->run_log.write(line);
  }
  RunLogLine line(run_log::overlap::line);
  line.add(run_log::overlap::iteration, sample_iteration_)
      .add(run_log::overlap::compute_ns, busy_ns(compute))
      .add(run_log::overlap::copy_ns, busy_ns(copies))
      .add(run_log::overlap::both_ns, both_busy_ns(compute, copies));
  shared_->run_log.write(line);
  intervals_.clear();
}

}  // namespace reprise::replay

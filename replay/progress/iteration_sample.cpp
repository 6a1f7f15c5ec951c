#include "replay/progress/iteration_sample.h"

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

void IterationSample::open(Shared* shared, const PlanIndex* plan_index, uint32_t plan) noexcept {
  shared_ = shared;
  plan_index_ = plan_index;
  plan_ = plan;
}

void IterationSample::look_at(uint64_t iteration, uint64_t planned) noexcept {
  if (pending_ || (!wanted(planned) && !missed_)) return;
  ActivitySource* const activity = shared_->common.activity.load(std::memory_order_acquire);
  if (activity == nullptr || !shared_->run_log.enabled() || shared_->common.recording.load()) return;
  // Before the source is looked at, which others may stop; another device's sample may be under way.
  if (shared_->common.sampling.exchange(true, std::memory_order_acq_rel)) return;
  if (!activity->running() && !activity->start())
    return shared_->common.sampling.store(false, std::memory_order_release);
  pending_ = true;
  iteration_ = iteration;
  age_ = 0;
}

// Its last work is complete when the one after the next begins.
void IterationSample::begun() noexcept {
  if (pending_ && ++age_ >= 3) report();
}

void IterationSample::end(uint64_t iteration, bool whole) noexcept {
  if (iteration_ == iteration && !whole) age_ = 0;  // a part would pass for a whole one
  if (pending_) report();
}

void IterationSample::keep(void* self, uint64_t id, uint64_t start_ns, uint64_t end_ns) noexcept {
  if ((id & kPlanBit) == 0) return;
  static_cast<IterationSample*>(self)->intervals_.push_back(
      {(id >> 32) & kIterationBits, static_cast<uint32_t>(id), start_ns, end_ns});
}

void IterationSample::report() noexcept {
  pending_ = false;
  shared_->common.sampling.store(false, std::memory_order_release);
  ActivitySource* const activity = shared_->common.activity.load(std::memory_order_acquire);
  // A program thread that collects for the recording takes these times, too: then the sample is lost.
  if (activity == nullptr || shared_->common.collecting.exchange(true, std::memory_order_acquire)) return;
  // Stopped first: CUPTI keeps a buffer to itself that holds records of work that is not complete, and the next
  // iteration runs; on an H200 samples came one too late, and were empty.
  if (!shared_->common.recording.load(std::memory_order_relaxed)) activity->stop();
  activity->collect(&IterationSample::keep, this);
  shared_->common.collecting.store(false, std::memory_order_release);
  missed_ = age_ == 0;  // it has not begun, or was left before its end
  if (missed_) return intervals_.clear();
  if (intervals_.empty()) return;  // as in replays on an H200: no record said what it was of
  static const char* const engines[] = {"compute", "h2d", "d2h", "compute"};
  Spans compute;
  Spans copies;
  for (const SampledInterval& interval : intervals_) {
    if (interval.iteration != (iteration_ & kIterationBits) || interval.vertex >= plan_index_->lanes.size()) continue;
    const LaneKind kind = plan_index_->lanes[interval.vertex];
    (kind == LaneKind::compute ? compute : copies).emplace_back(interval.start_ns, interval.end_ns);
    RunLogLine line(run_log::activity::line);
    line.add(run_log::activity::iteration, iteration_)
        .add(run_log::activity::plan, uint64_t{plan_})
        .add(run_log::activity::vertex, interval.vertex)
        .add(run_log::activity::engine, std::string(engines[static_cast<int>(kind)]))
        .add(run_log::activity::start_ns, interval.start_ns)
        .add(run_log::activity::end_ns, interval.end_ns);
    shared_->run_log.write(line);
  }
  RunLogLine line(run_log::overlap::line);
  line.add(run_log::overlap::iteration, iteration_)
      .add(run_log::overlap::compute_ns, busy_ns(compute))
      .add(run_log::overlap::copy_ns, busy_ns(copies))
      .add(run_log::overlap::both_ns, both_busy_ns(compute, copies));
  shared_->run_log.write(line);
  intervals_.clear();
}

}  // namespace reprise::replay

#include "replay/follow/repetition.h"

#include <algorithm>

namespace reprise::replay {
namespace {
// Before the first of them memory is allocated that stays, and the detector of all calls sees what repeats only then.
constexpr uint64_t kLooselyEqual = 4;
}  // namespace

void Repetition::watch_for_others() noexcept {
  watching_ = true;
  counts_ = false;
}

uint32_t Repetition::counter_of(const PlanIndex& index) noexcept {
  LoopCounter loop(words_of(index), plan::sizes_vary(index.plan));
  const auto same = std::find_if(loops_.begin(), loops_.end(), [&](const LoopCounter& other) {
    return other.sizes_vary() == loop.sizes_vary() && other.words() == loop.words();
  });
  const auto number = static_cast<uint32_t>(same - loops_.begin());
  if (same == loops_.end()) {
    if (!loop.sizes_vary()) detector_.for_each_word([&](uint64_t word) { loop.add(word); });
    loops_.push_back(std::move(loop));
  }
  tell();
  return number;
}

CountedLoops Repetition::take() noexcept {
  for (LoopCounter& loop : loops_) loop.start_over();
  return {std::move(loops_), next_iteration_};
}

bool Repetition::add(const LoopWord& call, uint64_t structure) noexcept {
  for (LoopCounter& loop : loops_) loop.add(call);
  if (!loops_.empty()) tell();
  const bool repeats = detect(call.exact);
  repeats_loosely_ = !repeats && watching_ && !has_plans_ && structure != 0 && detect_loosely(structure);
  return repeats || repeats_loosely_;
}

// Asked about after 4 equal periods, 8, 16 ..., where they are most of what the program has done.
bool Repetition::detect_loosely(uint64_t structure) noexcept {
  loose_.add(recent_.add(structure));
  if (loose_.repetitions() < kLooselyEqual) {
    loose_wanted_ = kLooselyEqual;
    return false;
  }
  const bool as_found = detector_.repetitions() > 1 && detector_.period() >= loose_.period();
  const bool is_most = 4 * loose_.repetitions() * loose_.period() >= 3 * loose_.calls();
  if (as_found || !is_most || loose_.period() < 2 || loose_.repetitions() < loose_wanted_) return false;
  loose_wanted_ = 2 * loose_.repetitions();
  return true;
}

void Repetition::tell() noexcept {
  uint64_t finished = 0;
  uint64_t unfinished = 0;
  for (const LoopCounter& loop : loops_) {
    finished += loop.finished();
    unfinished += loop.unfinished();
  }
  shared_.counters.loops_on_demand.store(finished, std::memory_order_relaxed);
  shared_.counters.loops_unfinished.store(unfinished, std::memory_order_relaxed);
}

bool Repetition::detect(uint64_t word) noexcept {
  if (!watching_ && period_ == 0) return false;
  if (period_ != 0 && ++in_period_ == period_) boundary();
  if (!watching_) return false;
  const bool repeats = detector_.add(word);
  // One call again and again is no iteration, and a line each would fill the log.
  const bool another = detector_.period() > 1 && period_ != detector_.period();
  if (repeats && counts_ && !has_plans_ && another) begin_to_count();
  return repeats;
}

// Another loop than before repeats. What of it is over has not been counted yet.
void Repetition::begin_to_count() noexcept {
  const uint64_t over = detector_.repetitions();
  period_ = detector_.period();
  in_period_ = 0;
  began_ns_ = RunLogWriter::now_ns();
  next_iteration_ += over;
  shared_.counters.iterations_on_demand.fetch_add(over, std::memory_order_relaxed);
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::repeats::line);
  line.add(run_log::repeats::calls, period_).add(run_log::repeats::iterations, over);
  shared_.run_log.write(line);
}

void Repetition::boundary() noexcept {
  in_period_ = 0;
  const uint64_t now = RunLogWriter::now_ns();
  const uint64_t began = std::exchange(began_ns_, now);
  if (began == 0) return;
  shared_.counters.iterations_on_demand.fetch_add(1, std::memory_order_relaxed);
  const uint64_t index = next_iteration_++;
  if (!shared_.run_log.enabled()) return;
  RunLogLine line(run_log::iteration::line);
  line.add(run_log::iteration::index, index)
      .add(run_log::iteration::mode, run_log::iteration::on_demand)
      .add(run_log::iteration::wall_ns, now - began)
      .add(run_log::iteration::calls, period_);
  shared_.run_log.write(line);
}

// It repeats from somewhere in the iteration, and the plan begins at its start.
void Repetition::plan_begins() noexcept {
  if (began_ns_ != 0 && 2 * in_period_ >= period_) boundary();
  began_ns_ = period_ != 0 ? RunLogWriter::now_ns() : 0;
  in_period_ = 0;
}

void Repetition::plan_in_force() noexcept {
  has_plans_ = true;
  for (LoopCounter& loop : loops_) loop.start_over();
}

void Repetition::plan_ends(uint32_t loop, uint32_t call, const PlanIndex& index) noexcept {
  plan_in_force();
  loops_[loop].left_plan_at(call, index);
}

void Repetition::left_planned_iterations() noexcept { began_ns_ = in_period_ = 0; }

void Repetition::left_plan(uint64_t calls) noexcept { in_period_ = calls; }

}  // namespace reprise::replay

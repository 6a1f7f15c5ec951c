#include "replay/follow/detector.h"

#include <algorithm>

#include "preload/trace/signature.h"

namespace reprise::replay {
namespace {
constexpr uint64_t kFewestCalls = 4;  // shorter "iterations" are loops inside one
}  // namespace

Detector::Detector(uint64_t history) noexcept : history_(history), last_(history / 4) {}

// Where the word stood last, 0 if unknown. A collision only loses a guess.
uint64_t Detector::exchange_last(uint64_t word, uint64_t position) noexcept {
  Last& last = last_[word % last_.size()];
  const uint64_t before = last.word == word && last.position > floor_ ? last.position : 0;
  last = {word, position};
  return before;
}

bool Detector::add(uint64_t word) noexcept {
  const uint64_t position = ++count_;
  const uint64_t before = exchange_last(word, position);
  history_[position % history_.size()] = word;
  if (period_ != 0 && at(position - period_) == word) {
    ++run_;
  } else {
    // A mismatch: the distance to the last equal call is the new guess. A call that occurs once per iteration gives the
    // true period at its second occurrence.
    period_ = before != 0 && position - before < history_.size() / 2 ? position - before : 0;
    run_ = period_ != 0 ? 1 : 0;
  }
  if (period_ == 0 || run_ < period_ || position < quiet_until_ || position - floor_ < 2 * kFewestCalls) return false;
  // Equal for a whole period. Ask only when the run is a whole number of periods long, so that a rejected guess is not
  // repeated at every call.
  return run_ % period_ == 0 && run_ >= kFewestCalls;
}

void Detector::asked() noexcept {
  asked_at_ = count_;
  asked_period_ = period_;
}

// Often one period more is what was missing: what came before the loop lies in the first one. So the next question
// comes one later, then two, four, ... and never later than behind twice the calls. Each wait is twice the one before,
// whatever loops they are about: N calls mean some log(N) questions.
void Detector::rejected(bool soon) noexcept {
  const uint64_t at = asked_at_ > floor_ ? asked_at_ : count_;
  const uint64_t seen = at - floor_;
  wait_ = std::min(std::max(asked_period_, 2 * wait_), seen);
  quiet_until_ = at + (soon ? wait_ : seen);
}

void Detector::restart(uint64_t quiet) noexcept {
  floor_ = asked_at_ = count_;
  wait_ = 0;
  period_ = run_ = 0;
  quiet_until_ = count_ + quiet;
}

uint64_t Detector::loop() const noexcept {
  uint64_t sum = period_;
  for (uint64_t i = 0; i < period_; ++i) sum += trace::hash_mix(period_, at(count_ - i));
  return sum;
}

}  // namespace reprise::replay

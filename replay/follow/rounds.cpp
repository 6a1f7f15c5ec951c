#include "replay/follow/rounds.h"

#include <bit>

namespace reprise::replay {
namespace {

constexpr uint64_t kRoundsBeforeHold = 8;  // and eight times as many before the second
constexpr uint64_t kRoundsHeld = 4;        // the detector needs three
constexpr uint64_t kMostHolds = 2;
constexpr uint64_t kFewIterations = 8;  // of plans, in a round

}  // namespace

void Rounds::start_over() noexcept { activations_ = planned_iterations_ = calls_ = in_use_ = 0; }

void Rounds::plan_added() noexcept {
  end_hold();
  start_over();
}

void Rounds::activated(uint32_t plan) noexcept {
  ++activations_;
  in_use_ |= uint64_t{1} << plan;
}

void Rounds::activated_in_vain() noexcept {
  if (activations_ > 0) --activations_;
}

bool Rounds::hold_now() noexcept {
  const auto in_turns = static_cast<uint64_t>(std::popcount(in_use_));
  if (holds_ == kMostHolds || activations_ == 0) return false;
  if (activations_ < in_turns * kRoundsBeforeHold << (holds_ * 3)) return false;
  const bool parts = planned_iterations_ <= activations_ * kFewIterations;
  if (parts) {
    ++holds_;
    const uint64_t round = calls_ / activations_ + 1;
    held_calls_ = kRoundsHeld * in_turns * round;
    // Rounds are not of one length; what repeats within the plans' iterations has been asked about.
    shortest_period_ = round - round / 8;
  }
  start_over();
  return parts;
}

bool Rounds::holds_call() noexcept {
  if (held_calls_ == 0) return false;
  if (--held_calls_ == 0) end_hold();
  return true;
}

}  // namespace reprise::replay

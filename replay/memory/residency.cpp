#include "replay/memory/residency.h"

#include <cassert>
#include <initializer_list>

namespace reprise::replay {
namespace {

using State = Residency::State;

// Not in the victim process of a release build, which must not end here.
void check([[maybe_unused]] State now, [[maybe_unused]] std::initializer_list<State> allowed) noexcept {
#ifndef NDEBUG
  bool found = false;
  for (const State each : allowed) found = found || each == now;
  assert(found);
#endif
}

}  // namespace

void Residency::begin_arrival() noexcept {
  check(state_, {State::away, State::dropped});
  state_ = State::arriving;
}

void Residency::turn_back() noexcept {
  check(state_, {State::arriving});
  state_ = State::away;
}

void Residency::settle_in() noexcept {
  check(state_, {State::away, State::arriving, State::resident, State::dropping, State::dropped});
  state_ = State::resident;
}

void Residency::begin_departure() noexcept {
  check(state_, {State::resident});
  state_ = State::departing;
}

void Residency::stay() noexcept {
  check(state_, {State::departing});
  state_ = State::resident;
}

void Residency::left() noexcept {
  check(state_, {State::away, State::resident, State::departing, State::dropping, State::dropped});
  state_ = state_ == State::dropping || state_ == State::dropped ? State::dropped : State::away;
}

void Residency::lose() noexcept {
  check(state_, {State::away, State::resident, State::departing, State::dropped});
  state_ = State::lost;
}

void Residency::wrote() noexcept {
  check(state_, {State::in_block, State::resident});
  copy_ = Copy::stale;
}

// Bytes that were never written are no better with a copy.
void Residency::host_copy_made(LaneUse ready) noexcept {
  check(state_, {State::resident, State::departing});
  if (is_written()) copy_ = Copy::valid;
  host_ready_ = ready;
}

void Residency::host_copy_found() noexcept {
  check(state_, {State::resident, State::departing});
  copy_ = Copy::valid;
}

void Residency::host_copy_dropped() noexcept {
  if (host_valid()) copy_ = Copy::stale;
}

void Residency::drop() noexcept {
  check(state_, {State::resident});
  state_ = State::dropping;
}

void Residency::remade() noexcept {
  check(state_, {State::resident, State::dropping});
  state_ = State::resident;
  if (!is_written()) copy_ = Copy::stale;
}

void Residency::not_remade() noexcept {
  check(state_, {State::resident, State::dropping});
  state_ = State::dropped;
}

void Residency::end_drop() noexcept {
  if (state_ == State::dropping) state_ = State::resident;
  if (state_ == State::dropped) state_ = State::away;
}

}  // namespace reprise::replay

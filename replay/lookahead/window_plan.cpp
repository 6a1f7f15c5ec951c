#include "replay/lookahead/window_plan.h"

#include <algorithm>

namespace reprise::replay {

bool WindowPlan::set_limit(uint64_t chunks) noexcept {
  if (chunks < limit_) return false;
  if (chunks > limit_) stalled_ = false;
  free_ += chunks - limit_;
  limit_ = chunks;
  return true;
}

void WindowPlan::restart(HistoryIndex next, uint64_t free_chunks, uint64_t limit) noexcept {
  begun_ = cursor_ = next;
  free_ = free_chunks;
  limit_ = limit;
  stalled_ = false;
  places_.clear();
  furthest_.clear();
  frees_.clear();
  moves_.clear();
  foreseen_.clear();
  names_.clear();
}

void WindowPlan::is_there(const CallHistory& history, Mover mover, uint64_t chunks) {
  if (history.freed_before(mover, cursor_)) {  // it is about to go by itself
    free_ += chunks;
    return;
  }
  const Need need = need_of(history, mover, cursor_, false);
  places_[mover] = {chunks, need, 0};
  furthest_.emplace(need, mover);
}

// As of op `before`, which is not performed yet. A block that no known call needs holds what any call may.
WindowPlan::Need WindowPlan::need_of(const CallHistory& history, Mover mover, HistoryIndex before, bool later) {
  if (before == 0) return {};
  const HistoryIndex next_use = history.next_use(mover, before - 1, later);
  if (next_use != CallHistory::kNever) return {next_use, 0};
  return {next_use, is_block(mover) ? 0 : CallHistory::kNever - history.last_use(mover, before)};
}

void WindowPlan::extend(const CallHistory& history, HistoryIndex next) {
  while (!stalled_ && cursor_ < history.horizon() && cursor_ < next + kMostOps && moves_.size() < kMostMoves) {
    const bool known = cursor_ < history.tail(), last = cursor_ + 1 == history.tail();
    if (last) predicted_ = history.last();
    if (!known) predicted_ = history.predicted(cursor_);
    stalled_ = !plan(history, known && !last ? history.called(cursor_) : predicted_);
    if (!stalled_ && !known) foreseen_.push_back(predicted_);
  }
}

// What op `cursor_` needs, and what leaves for that. False: there is no room before it.
bool WindowPlan::plan(const CallHistory& history, const HistoryOp& op) {
  if (op.everything) return false;
  look_again(history);
  needed_.clear();
  uint64_t more = 0;
  for (const Mover mover : op.movers) {
    if (places_.contains(mover)) continue;
    needed_.emplace_back(mover, history.chunks_of(mover));
    more += needed_.back().second;
  }
  if (!make_room(history, more, op.movers)) return false;
  for (const auto& [mover, chunks] : needed_) {
    moves_.push_back({Move::Kind::come, mover, chunks, cursor_, lives_later(history, mover)});
    places_[mover] = {chunks, {}, 0};
    free_ -= chunks;
  }
  for (const Mover mover : op.movers) used(history, mover);
  for (const Mover mover : op.freed) end_life(mover);
  ++cursor_;
  return true;
}

// What is needed after op `cursor_` alone may leave for it.
bool WindowPlan::make_room(const CallHistory& history, uint64_t chunks, const std::vector<Mover>& needed) {
  if (free_ >= chunks) return true;
  uint64_t room = free_;
  auto first = furthest_.end();
  while (room < chunks && first != furthest_.begin()) {
    --first;
    if (first->first.next_use <= cursor_) return false;
    if (std::find(needed.begin(), needed.end(), first->second) != needed.end()) return false;
    room += places_[first->second].chunks;
  }
  if (room < chunks) return false;
  while (free_ < chunks) {
    const Mover mover = std::prev(furthest_.end())->second;
    const WindowPlace place = places_[mover];
    moves_.push_back({Move::Kind::leave, mover, place.chunks, place.free_from, lives_later(history, mover)});
    gone(mover);
  }
  return true;
}

// What was foreseen for an op before this one did not come: it would never leave.
void WindowPlan::look_again(const CallHistory& history) {
  while (cursor_ > 0 && !furthest_.empty() && furthest_.begin()->first.next_use < cursor_) {
    const Mover mover = furthest_.begin()->second;
    furthest_.erase(furthest_.begin());
    WindowPlace& place = places_[mover];
    place.need = need_of(history, mover, cursor_, lives_later(history, mover) > 0);
    furthest_.emplace(place.need, mover);
  }
}

void WindowPlan::used(const CallHistory& history, Mover mover) {
  WindowPlace& place = places_[mover];
  furthest_.erase({place.need, mover});
  place.need = need_of(history, mover, cursor_ + 1, lives_later(history, mover) > 0);
  place.free_from = cursor_ + 1;
  furthest_.emplace(place.need, mover);
}

void WindowPlan::gone(Mover mover) {
  const auto found = places_.find(mover);
  if (found == places_.end()) return;
  free_ += found->second.chunks;
  stalled_ = false;
  furthest_.erase({found->second.need, mover});
  places_.erase(found);
}

void WindowPlan::end_life(Mover mover) {
  gone(mover);
  ++frees_[mover];
}

void WindowPlan::freed(const CallHistory& history, Mover mover) {
  if (frees_.contains(mover)) return;  // it was foreseen, perhaps behind another op
  if (history.freed_before(mover, begun_)) return gone(mover);
  if (cursor_ == history.tail()) end_life(mover);  // else the op before is still to be planned, or foreseen without it
}

uint32_t WindowPlan::lives_later(const CallHistory& history, Mover mover) const noexcept {
  const auto frees = frees_.find(mover);
  return (frees == frees_.end() ? 0 : frees->second) + (history.freed_before(mover, begun_) ? 1 : 0);
}

bool WindowPlan::confirm(const CallHistory& history, HistoryIndex index) {
  if (index >= cursor_) return true;
  if (foreseen_.empty()) return false;
  const HistoryOp expected = std::move(foreseen_.front());
  foreseen_.pop_front();
  const HistoryOp& called = history.called(index);
  if (expected.signature != called.signature || expected.movers.size() != called.movers.size()) return false;
  for (size_t i = 0; i < called.movers.size(); ++i) {
    const auto named = names_.find(expected.movers[i]);
    const Mover mover = named == names_.end() ? expected.movers[i] : named->second;
    if (mover == called.movers[i]) continue;
    if (places_.contains(called.movers[i])) return false;
    if (!rename(history, mover, called.movers[i])) return false;
    names_[expected.movers[i]] = called.movers[i];
  }
  return true;
}

// False: it is larger than what was foreseen, and there is no room for that.
bool WindowPlan::rename(const CallHistory& history, Mover before, Mover now) {
  const uint64_t chunks = history.chunks_of(now);
  const auto found = places_.find(before);
  if (found != places_.end()) {
    WindowPlace place = found->second;
    if (free_ + place.chunks < chunks) return false;
    free_ = free_ + place.chunks - chunks;
    place.chunks = chunks;
    furthest_.erase({place.need, before});
    places_.erase(found);
    places_[now] = place;
    furthest_.emplace(place.need, now);
  }
  // The next tensor in `before`'s place is there; moves of the one before go on.
  const uint32_t frees = lives_later(history, before);
  for (Move& move : moves_) {
    if (move.mover != before || (frees > 0 && move.lives_later == 0)) continue;
    move.mover = now;
    move.chunks = chunks;
    if (frees > 0) --move.lives_later;
  }
  if (frees > 0) frees_.erase(before);
  if (frees > 1) frees_[now] = frees - 1;
  return true;
}

}  // namespace reprise::replay

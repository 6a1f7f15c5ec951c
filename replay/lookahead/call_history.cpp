#include "replay/lookahead/call_history.h"

#include <algorithm>

namespace reprise::replay {
namespace {

constexpr uint64_t kBase = 0x9e3779b97f4a7c15;  // odd: hashes of suffixes are differences of those of prefixes

uint64_t power(uint64_t exponent) noexcept {
  uint64_t result = 1;
  for (uint64_t base = kBase; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

uint64_t mixed(uint64_t value) noexcept {
  value = (value ^ (value >> 31)) * 0xbf58476d1ce4e5b9;
  return value ^ (value >> 29);
}

}  // namespace

void CallHistory::add(uint64_t signature, bool everything, const std::vector<Mover>& movers) {
  if (ops_.empty()) {
    ops_.resize(kMostOps);
    hashes_.resize(kMostOps);
    suffixes_.resize(std::size(kSuffixes) * kSlots);
  }
  if (tail_ >= kMostOps) forget_oldest();
  const uint64_t before = tail_ == 0 ? 0 : hashes_[(tail_ - 1) % kMostOps];
  hashes_[tail_ % kMostOps] = before * kBase + mixed(signature);
  HistoryOp& op = ops_[tail_ % kMostOps];
  op.signature = signature;
  op.everything = everything;
  op.movers = movers;
  op.freed.clear();
  for (const Mover mover : movers) {
    Life& one = lives_[mover];
    if (one.uses.size() >= 64 && one.uses[one.uses.size() / 2] + kMostOps <= tail_) {
      one.uses.erase(one.uses.begin(), one.uses.begin() + static_cast<std::ptrdiff_t>(one.uses.size() / 2));
    }
    one.uses.push_back(tail_);
  }
  follow(signature);
  learn_suffixes();
  ++tail_;
  if (match_ != kNever) link(ops_[match_ % kMostOps], op);
}

// Goes on behind the op that corresponds to the last one, or finds another.
void CallHistory::follow(uint64_t signature) noexcept {
  if (match_ == kNever) return;
  const bool as_before = match_ + 1 < tail_ && called(match_ + 1).signature == signature;
  ++(as_before ? foreseen_ : unforeseen_);
  match_ = as_before ? match_ + 1 : kNever;
  ++matched_;
}

void CallHistory::learn_suffixes() noexcept {
  const HistoryIndex oldest = std::max(since_, tail_ >= kMostOps ? tail_ - kMostOps + 1 : 0);
  for (size_t i = 0; i < std::size(kSuffixes); ++i) {
    const uint64_t length = kSuffixes[i];
    if (tail_ + 1 < since_ + length) continue;
    const HistoryIndex first = tail_ + 1 - length;
    const uint64_t before = first == 0 ? 0 : hashes_[(first - 1) % kMostOps];
    const uint64_t hash = hashes_[tail_ % kMostOps] - before * power(length);
    Suffix& slot = suffixes_[i * kSlots + mixed(hash) % kSlots];
    const bool known = slot.last != kNever && slot.hash == hash && slot.last >= oldest;
    if (match_ == kNever && known) match_ = slot.last, matched_ = length;
    slot = {hash, tail_};
  }
}

// Operand by operand: what it was last time, and what it is now.
void CallHistory::link(const HistoryOp& before, const HistoryOp& now) {
  if (before.movers.size() != now.movers.size()) return;
  for (size_t i = 0; i < now.movers.size(); ++i) {
    const Mover old = before.movers[i], mover = now.movers[i];
    Life& one = lives_[mover];
    one.ancestor = old == mover ? Mover::none : old;
    const auto found = lives_.find(old);
    if (found != lives_.end()) found->second.heir = old == mover ? Mover::none : mover;
  }
}

void CallHistory::add_free(Mover mover) {
  const auto found = lives_.find(mover);
  if (found == lives_.end() || tail_ == 0) return;
  found->second.freed_behind = tail_ - 1;
  ops_[(tail_ - 1) % kMostOps].freed.push_back(mover);
}

void CallHistory::interrupt() noexcept {
  since_ = tail_;
  match_ = kNever;
}

void CallHistory::forget_oldest() noexcept {
  const HistoryIndex oldest = tail_ - kMostOps;
  if (match_ != kNever && match_ <= oldest) match_ = kNever;
  for (const Mover mover : ops_[oldest % kMostOps].movers) {
    const auto found = lives_.find(mover);
    if (found != lives_.end() && found->second.freed_behind != kNever && found->second.uses.back() <= oldest)
      lives_.erase(found);
  }
}

const CallHistory::Life* CallHistory::life(Mover mover) const noexcept {
  const auto found = lives_.find(mover);
  return found == lives_.end() ? nullptr : &found->second;
}

Mover CallHistory::heir_of(Mover mover) const noexcept {
  const Life* const one = life(mover);
  return one == nullptr || one->heir == Mover::none ? mover : one->heir;
}

HistoryOp CallHistory::predicted(HistoryIndex index) const {
  HistoryOp op = called(match_ + 1 + (index - tail_));
  for (Mover& mover : op.movers) mover = heir_of(mover);
  for (Mover& mover : op.freed) mover = heir_of(mover);
  return op;
}

HistoryOp CallHistory::last() const {
  HistoryOp op = called(tail_ - 1);
  if (match_ == kNever) return op;
  for (const Mover before : called(match_).freed) {
    const Mover mover = heir_of(before);
    if (!freed_before(mover, tail_)) op.freed.push_back(mover);
  }
  return op;
}

HistoryIndex CallHistory::next_use(Mover mover, HistoryIndex after, bool later) const noexcept {
  const Life* one = life(mover);
  if (one == nullptr) return kNever;
  const auto next = std::upper_bound(one->uses.begin(), one->uses.end(), after);
  if (next != one->uses.end()) return *next;
  if (match_ == kNever) return kNever;
  // What comes later was there last time itself.
  const bool freed = one->freed_behind != kNever;
  const bool lives = !freed && later;
  later = later || freed;
  const bool lives_on = one->ancestor == Mover::none && !later;
  if (one->ancestor != Mover::none && !later) one = life(one->ancestor);
  if (one == nullptr) return kNever;
  const HistoryIndex from = after >= tail_ ? after - tail_ + match_ + 1 : match_;
  const auto last_time = std::upper_bound(one->uses.begin(), one->uses.end(), from);
  const uint64_t period = tail_ - match_ - 1;
  if (last_time != one->uses.end()) return *last_time + period;
  if (lives) {  // what is still to come of its life comes again, too
    const HistoryIndex use = next_use(mover, std::max(from, tail_ - 1), false);
    return use == kNever ? kNever : use + period;
  }
  // Behind what is predicted, it all comes again.
  const auto first = lives_on ? std::upper_bound(one->uses.begin(), one->uses.end(), match_) : one->uses.end();
  return first == one->uses.end() ? kNever : end() + (*first - match_ - 1);
}

HistoryIndex CallHistory::last_use(Mover mover, HistoryIndex before) const noexcept {
  const Life* const one = life(mover);
  if (one == nullptr) return 0;
  const auto next = std::lower_bound(one->uses.begin(), one->uses.end(), before);
  return next == one->uses.begin() ? 0 : *std::prev(next);
}

}  // namespace reprise::replay

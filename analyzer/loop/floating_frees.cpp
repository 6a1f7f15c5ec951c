#include "analyzer/loop/floating_frees.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace reprise::analyzer {
namespace {

bool is_free(const CallStream& stream, CallIndex call) {
  const uint32_t span = stream.allocations[call];
  return span != kNone && stream.spans[span].allocated != call;
}

constexpr size_t kUsual = 95;  // % of the frees come no later

// By span: the call behind which its free is to stand; kNone: it stays.
using Anchors = std::vector<uint32_t>;

// The same calls in another order.
class Arrangement {
 public:
  Arrangement(const CallStream& stream, const Anchors& behind) : stream_(stream), behind_(behind) {}

  CallStream run() {
    made_.trace = stream_.trace;
    made_.spans = stream_.spans;
    made_.span_of = stream_.span_of;
    sort_moved();
    now_at_.assign(stream_.size() + 1, kNone);
    auto next = moved_.begin();
    for (CallIndex call{0}; call < stream_.size(); ++call) {
      waited_ |= stream_.after_wait[call] != 0;
      if (moves(call)) continue;
      push(call);
      for (; next != moved_.end() && next->first == call; ++next) push(CallIndex(stream_.spans[next->second].freed));
    }
    waited_ |= stream_.after_wait.back() != 0;
    push_boundary();
    now_at_.back() = made_.size();
    for (CallIndex call{stream_.size()}; call-- > 0;) {
      if (moves(call)) now_at_[call] = now_at_[call + 1];  // as a place between calls
    }
    const auto map = [this](uint32_t call) { return now_at_[call]; };
    std::transform(stream_.incomplete.begin(), stream_.incomplete.end(), std::back_inserter(made_.incomplete), map);
    std::transform(stream_.seams.begin(), stream_.seams.end(), std::back_inserter(made_.seams), map);
    return std::move(made_);
  }

 private:
  bool moves(CallIndex call) const { return is_free(stream_, call) && behind_[stream_.allocations[call]] != kNone; }

  // By the call that they stand behind; those of one in the order of their allocation.
  void sort_moved() {
    for (uint32_t span = 0; span < behind_.size(); ++span) {
      if (behind_[span] != kNone) moved_.emplace_back(behind_[span], span);
    }
    std::sort(moved_.begin(), moved_.end());
  }

  void push_boundary() {
    made_.live_hash.push_back(hash_);
    made_.live_bytes.push_back(bytes_);
    made_.after_wait.push_back(waited_ ? 1 : 0);
    waited_ = false;
  }

  void push(CallIndex call) {
    push_boundary();
    now_at_[call] = made_.size();
    made_.events.push_back(stream_.events[call]);
    made_.allocations.push_back(stream_.allocations[call]);
    if (stream_.allocations[call] == kNone) return;
    AllocationSpan& span = made_.spans[stream_.allocations[call]];
    const bool frees = is_free(stream_, call);
    (frees ? span.freed : span.allocated) = now_at_[call];
    hash_ ^= alive_hash(span.id);
    bytes_ = frees ? bytes_ - span.size : bytes_ + span.size;
  }

  const CallStream& stream_;
  const Anchors& behind_;
  CallStream made_;
  std::vector<std::pair<uint32_t, uint32_t>> moved_;  // the call that one stands behind, its span
  std::vector<uint32_t> now_at_;                      // by call of the stream
  uint64_t hash_ = 0;
  uint64_t bytes_ = 0;
  bool waited_ = false;
};

// By span: its last use before its free, or its allocation.
Anchors last_uses(const CallStream& stream) {
  Anchors last(stream.spans.size(), kNone);
  for (uint32_t span = 0; span < stream.spans.size(); ++span) last[span] = stream.spans[span].allocated;
  for (CallIndex call{0}; call < stream.size(); ++call) {
    const trace::Op* const op = stream.op(call);
    if (op == nullptr) continue;
    for (const trace::AccessRecord& access : op->accesses) {
      const auto span = stream.span_of.find(access.allocation);
      if (span != stream.span_of.end() && call < stream.spans[span->second].freed) last[span->second] = call;
    }
  }
  return last;
}

bool is_cut(const std::vector<uint32_t>& places, uint32_t from, uint32_t to) {
  const auto place = std::upper_bound(places.begin(), places.end(), from);
  return place != places.end() && *place <= to;
}

// Ops and allocations, by call how many come before it, and where each is.
struct Ticks {
  explicit Ticks(const CallStream& stream) {
    for (CallIndex call{0}; call < stream.size(); ++call) {
      before.push_back(static_cast<uint32_t>(at.size()));
      if (!is_free(stream, call)) at.push_back(call);
    }
    before.push_back(static_cast<uint32_t>(at.size()));
  }
  std::vector<uint32_t> before;
  std::vector<uint32_t> at;
};

// How late frees come in a row of equal iterations. Corresponding frees are one iteration's calls apart.
class Lateness {
 public:
  Lateness(const CallStream& recorded, const CallStream& at_last_use, const Iteration& found)
      : recorded_(recorded),
        floated_(at_last_use),
        count_(found.call_count),
        last_(last_uses(recorded)),
        recorded_ticks_(recorded),
        floated_ticks_(at_last_use) {
    first_ = CallIndex(found.first_call);
    while (first_ >= count_ && same(first_ - count_)) first_ -= count_;
    end_ = found.first_call + count_;
    while (end_ + count_ <= floated_.size() && same(end_)) end_ += count_;
  }

  Anchors run() const {
    Anchors behind(floated_.spans.size(), kNone);
    const uint32_t usual = usual_lateness();
    for (uint32_t offset = 0; offset < count_; ++offset) {
      if (!is_free(floated_, first_ + offset)) continue;
      uint32_t most = usual;
      for_each_free(offset, [&](uint32_t span) { most = std::max(most, late(span)); });
      const uint32_t ticks = std::min(most, ticks_to_end(offset));
      if (ticks == 0) continue;
      for_each_free(offset, [&](uint32_t span) {
        const uint32_t at = floated_ticks_.before[floated_.spans[span].freed] + ticks - 1;
        if (at < floated_ticks_.at.size()) behind[span] = floated_ticks_.at[at];
      });
    }
    return behind;
  }

  // Can a plan begin? At one of four boundaries at least, every tensor that has seen its last use must be freed.
  bool may_begin() const {
    std::vector<uint32_t> begins;
    for (CallIndex call{first_}; call < end_; call += count_) begins.push_back(floated_ticks_.before[call]);
    std::vector<bool> all_came(begins.size(), true);
    for (uint32_t span = 0; span < floated_.spans.size(); ++span) {
      if (floated_.spans[span].freed == kNone) continue;
      const uint32_t used = floated_ticks_.before[floated_.spans[span].freed];
      const uint32_t freed = recorded_ticks_.before[recorded_.spans[span].freed];
      for (auto at = std::lower_bound(begins.begin(), begins.end(), used); at != begins.end() && *at < freed; ++at) {
        all_came[static_cast<size_t>(at - begins.begin())] = false;
      }
    }
    return 4 * std::count(all_came.begin(), all_came.end(), true) >= std::ssize(begins);
  }

 private:
  // Few iterations say little about one tensor: each may come as late as nearly all do.
  uint32_t usual_lateness() const {
    std::vector<uint32_t> all;
    for (uint32_t offset = 0; offset < count_; ++offset) {
      if (!is_free(floated_, first_ + offset)) continue;
      for_each_free(offset, [&](uint32_t span) { all.push_back(late(span)); });
    }
    if (all.empty()) return 0;
    std::sort(all.begin(), all.end());
    return all[(all.size() - 1) * kUsual / 100];
  }

  // Does the iteration that begins here free as the one that was found?
  bool same(uint32_t begin) const {
    if (!contiguous(floated_, begin, begin + count_)) return false;
    for (uint32_t i = 0; i < count_; ++i) {
      const uint32_t a = floated_.allocations[begin + i];
      const uint32_t b = floated_.allocations[first_ + i];
      if ((a == kNone) != (b == kNone) || is_free(floated_, CallIndex(begin + i)) != is_free(floated_, first_ + i))
        return false;
      if (a != kNone && floated_.spans[a].size != floated_.spans[b].size) return false;
    }
    return true;
  }

  template <typename Each>
  void for_each_free(uint32_t offset, Each each) const {
    for (CallIndex call{first_ + offset}; call < end_; call += count_) each(floated_.allocations[call]);
  }

  // Behind its last use, as recorded.
  uint32_t late(uint32_t span) const {
    return recorded_ticks_.before[recorded_.spans[span].freed] - recorded_ticks_.before[last_[span] + 1];
  }

  // The plan's free stays within its iteration. The replay accepts it later, while no other tensor needs the place.
  uint32_t ticks_to_end(uint32_t offset) const {
    return floated_ticks_.before[first_ + count_] - floated_ticks_.before[first_ + offset];
  }

  const CallStream& recorded_;
  const CallStream& floated_;
  const uint32_t count_;
  const Anchors last_;  // of the recorded calls
  const Ticks recorded_ticks_;
  const Ticks floated_ticks_;
  CallIndex first_;  // of the first iteration in the row
  uint32_t end_ = 0;
};

}  // namespace

CallStream frees_at_last_use(const CallStream& recorded) {
  Anchors behind = last_uses(recorded);
  for (uint32_t span = 0; span < behind.size(); ++span) {
    const uint32_t freed = recorded.spans[span].freed;
    const bool stays = freed == kNone || is_cut(recorded.incomplete, behind[span], freed) ||
                       is_cut(recorded.seams, behind[span], freed);
    if (stays) behind[span] = kNone;
  }
  return Arrangement(recorded, behind).run();
}

std::optional<CallStream> frees_as_late(const CallStream& recorded, const CallStream& at_last_use,
                                        const Iteration& found) {
  const Lateness lateness(recorded, at_last_use, found);
  if (!lateness.may_begin()) return std::nullopt;
  return Arrangement(at_last_use, lateness.run()).run();
}

FoundLoop in_any_order(const CallStream& recorded, const FindIteration& find) {
  FoundLoop as_recorded{find(recorded)};
  if (as_recorded.is_most()) return as_recorded;
  const CallStream floated = frees_at_last_use(recorded);
  FoundLoop equal{find(floated)};
  if (!equal.is_most()) return as_recorded;
  equal.calls = frees_as_late(recorded, floated, equal.iteration.value());
  return equal.calls ? std::move(equal) : std::move(as_recorded);
}

}  // namespace reprise::analyzer

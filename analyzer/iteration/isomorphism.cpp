#include "analyzer/iteration/isomorphism.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace reprise::analyzer {
namespace {

// Do the calls [first, first + count) equal those from `second` on? `takes_turns`: a tensor may stand for the one that
// was allocated as far before it as the stretches are apart.
class Comparison {
 public:
  Comparison(const CallStream& stream, uint32_t first, uint32_t second, uint32_t count, bool takes_turns,
             bool parts_move)
      : stream_(stream),
        first_(first),
        second_(second),
        count_(count),
        takes_turns_(takes_turns),
        parts_move_(parts_move) {}

  Status same_calls() const {
    for (uint32_t i = 0; i < count_; ++i) {
      const char* difference = compare(first_ + i, second_ + i);
      if (difference != nullptr)
        return {StatusCode::not_found, fmt::format("call {} of the iteration {}", i, difference)};
    }
    return {};
  }

  // The same allocations are alive before each of these calls and `count` calls later.
  Status same_live_sets(std::initializer_list<CallIndex> starts) const {
    const uint32_t end = std::max(starts) + count_;
    for (const AllocationSpan& span : stream_.spans) {
      if (span.allocated >= end) break;
      if (!std::all_of(starts.begin(), starts.end(), [&](CallIndex start) { return continues(span, start); })) {
        return {StatusCode::not_found,
                fmt::format("allocation {} of {} bytes is alive at the start or at the end of the "
                            "iteration but not at both",
                            span.id, span.size)};
      }
    }
    return {};
  }

 private:
  // Is the allocation alive at `start` and one period later, or at neither, or handed over in between?
  bool continues(const AllocationSpan& span, CallIndex start) const {
    const bool before = alive(span, start);
    if (before == alive(span, start + count_)) return true;
    if (!before) {
      const uint32_t earlier = handed_over_from(stream_, span, count_);
      return earlier != kNone && alive(stream_.spans[earlier], start);
    }
    const auto later =
        std::lower_bound(stream_.spans.begin(), stream_.spans.end(), span.allocated + count_,
                         [](const AllocationSpan& other, uint32_t call) { return other.allocated < call; });
    return later != stream_.spans.end() && handed_over_from(stream_, *later, count_) != kNone &&
           &stream_.spans[handed_over_from(stream_, *later, count_)] == &span && alive(*later, start + count_);
  }
  static bool alive(const AllocationSpan& span, CallIndex call) {
    return span.allocated < call && (span.freed == kNone || span.freed >= call);
  }

  bool corresponds(uint32_t span_a, uint32_t span_b) const {
    const AllocationSpan& a = stream_.spans[span_a];
    const AllocationSpan& b = stream_.spans[span_b];
    const bool same_kind = a.size == b.size && a.origin == b.origin;
    if (takes_turns_) return span_a == span_b || (b.allocated - a.allocated == second_ - first_ && same_kind);
    if (a.allocated < first_) return span_a == span_b || handed_over_from(stream_, b, count_) == span_a;
    return b.allocated >= second_ && a.allocated - first_ == b.allocated - second_ && same_kind;
  }

  const char* compare(CallIndex a, CallIndex b) const {
    const trace::Op* op_a = stream_.op(a);
    const trace::Op* op_b = stream_.op(b);
    if ((op_a == nullptr) != (op_b == nullptr)) return "is an op in one and none in the other";
    if (op_a != nullptr) return compare_ops(*op_a, *op_b);
    const uint32_t span_a = stream_.allocations[a];
    const uint32_t span_b = stream_.allocations[b];
    const bool allocates_a = stream_.spans[span_a].allocated == a;
    if (allocates_a != (stream_.spans[span_b].allocated == b)) return "allocates in one and frees in the other";
    return corresponds(span_a, span_b) ? nullptr : "allocates or frees something else";
  }

  const char* compare_ops(const trace::Op& a, const trace::Op& b) const {
    if (a.record.signature != b.record.signature) return "launches something else";
    if (a.record.header.flags != b.record.header.flags) return "has other flags";
    if (a.accesses.size() != b.accesses.size()) return "has another number of pointers";
    for (size_t i = 0; i < a.accesses.size(); ++i) {
      const trace::AccessRecord& x = a.accesses[i];
      const trace::AccessRecord& y = b.accesses[i];
      const auto span_x = stream_.span_of.find(x.allocation);
      const auto span_y = stream_.span_of.find(y.allocation);
      if ((span_x == stream_.span_of.end()) != (span_y == stream_.span_of.end())) return "uses other kinds of memory";
      if (span_x == stream_.span_of.end()) continue;  // memory that is never moved may be another buffer each time
      if (!corresponds(span_x->second, span_y->second)) return "uses another tensor";
      if (x.mode != y.mode || x.parameter_offset != y.parameter_offset) return "uses a tensor in another way";
      if ((x.offset != y.offset || x.size != y.size) && !parts_move_) return "uses another part of a tensor";
    }
    return nullptr;
  }

  const CallStream& stream_;
  CallIndex first_;
  CallIndex second_;
  uint32_t count_;
  bool takes_turns_;
  bool parts_move_;
};

}  // namespace

uint32_t handed_over_from(const CallStream& stream, const AllocationSpan& span, uint32_t period) {
  if (span.allocated < period) return kNone;
  const CallIndex call{span.allocated - period};
  if (stream.allocations[call] == kNone) return kNone;
  const AllocationSpan& before = stream.spans[stream.allocations[call]];
  const bool same = before.allocated == call && before.size == span.size && before.origin == span.origin &&
                    before.device == span.device;
  return same && before.freed != kNone && before.freed < span.allocated ? stream.allocations[call] : kNone;
}

Status check_isomorphic(const CallStream& stream, uint32_t first, uint32_t second, uint32_t count, bool parts_move) {
  const Comparison comparison(stream, first, second, count, false, parts_move);
  const Status calls = comparison.same_calls();
  return calls.ok() ? comparison.same_live_sets({CallIndex(first), CallIndex(second)}) : calls;
}

Status check_turns(const CallStream& stream, uint32_t first, uint32_t period, uint32_t count) {
  const Comparison comparison(stream, first - period, first, count, true, false);
  const Status calls = comparison.same_calls();
  return calls.ok() ? comparison.same_live_sets({CallIndex(first)}) : calls;
}

}  // namespace reprise::analyzer

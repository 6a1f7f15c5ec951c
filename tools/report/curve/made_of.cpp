#include "tools/report/curve/made_of.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "analyzer/iteration/call_stream.h"
#include "preload/trace/signature.h"
#include "tools/report/view/travels.h"

namespace reprise::report {
namespace {

uint64_t signature_of(const analyzer::CallStream& stream, uint32_t call) {
  if (const trace::Op* const op = stream.op(analyzer::CallIndex(call))) return op->record.signature;
  const analyzer::AllocationSpan& span = stream.spans[stream.allocations[call]];
  return span.allocated == call ? trace::allocate_signature(span.origin, span.size)
                                : trace::free_signature(span.origin, span.size);
}

class Comparison {
 public:
  Comparison(const plan::Plan& plan, const trace::Trace& trace)
      : plan_(plan), stream_(analyzer::make_call_stream(trace)), tensors_(travels_of(plan)), number_(numbers_of(plan)) {
    for (const plan::Call& call : plan.calls) {
      before_.push_back(static_cast<uint32_t>(calls_.size()));
      if (!call.inserted) calls_.push_back(&call);
    }
  }

  bool agrees() const {
    const auto transient = std::find_if(tensors_.begin(), tensors_.end(),
                                        [this](const Travel& one) { return allocate_call(one) != plan::kNone; });
    if (transient == tensors_.end()) return agrees_somewhere();
    const analyzer::AllocationSpan* const span = span_of(transient->allocation);
    if (span == nullptr) return !stream_.trace->ended && has_persistent_before(stream_.size());
    const uint32_t position = before_[allocate_call(*transient)];
    return span->allocated >= position && agrees_at(span->allocated - position);
  }

 private:
  uint32_t allocate_call(const Travel& one) const { return plan_.tensors[one.tensor].allocate_call; }

  const analyzer::AllocationSpan* span_of(uint64_t allocation) const {
    const auto found = stream_.span_of.find(allocation);
    return found == stream_.span_of.end() ? nullptr : &stream_.spans[found->second];
  }

  // No tensor of its own says which iteration it was: any will do.
  bool agrees_somewhere() const {
    std::vector<uint64_t> wanted;
    for (const plan::Call* const call : calls_) wanted.push_back(call->signature);
    std::vector<uint64_t> there;
    for (uint32_t call = 0; call < stream_.size(); ++call) there.push_back(signature_of(stream_, call));
    const std::boyer_moore_horspool_searcher searcher(wanted.begin(), wanted.end());
    for (auto from = there.begin(); from != there.end(); ++from) {
      from = std::search(from, there.end(), searcher);
      if (from == there.end()) return false;
      if (agrees_at(static_cast<uint32_t>(from - there.begin()))) return true;
    }
    return false;
  }

  bool has_persistent_before(uint32_t first) const {
    return std::all_of(tensors_.begin(), tensors_.end(), [&](const Travel& one) {
      if (allocate_call(one) != plan::kNone) return true;
      const analyzer::AllocationSpan* const span = span_of(one.allocation);
      return span != nullptr && span->size == one.bytes && span->allocated < first;
    });
  }

  bool agrees_at(uint32_t first) const {
    if (calls_.size() > stream_.size() - first || !has_persistent_before(first)) return false;
    std::vector<uint64_t> allocations;
    for (const Travel& one : tensors_) allocations.push_back(one.allocation);
    for (uint32_t i = 0; i < calls_.size(); ++i) {
      if (calls_[i]->signature != signature_of(stream_, first + i)) return false;
      if (!same_allocations(*calls_[i], first + i, allocations)) return false;
    }
    return true;
  }

  // `allocations`: of each tensor. One that is handed over goes on as another.
  bool same_allocations(const plan::Call& call, uint32_t at, std::vector<uint64_t>& allocations) const {
    const trace::Op* const op = stream_.op(analyzer::CallIndex(at));
    if ((call.kind == plan::CallKind::op) != (op != nullptr)) return false;
    if (op != nullptr) return touches_same(call, *op, allocations);
    const uint64_t there = stream_.spans[stream_.allocations[at]].id;
    uint64_t& here = allocations[number_[call.tensor]];
    if (call.kind == plan::CallKind::allocate_handover) here = there;
    return here == there;
  }

  bool touches_same(const plan::Call& call, const trace::Op& op, const std::vector<uint64_t>& allocations) const {
    return std::all_of(call.accesses.begin(), call.accesses.end(), [&](const plan::OpAccess& access) {
      const uint64_t wanted = allocations[number_[access.tensor]];
      return std::any_of(op.accesses.begin(), op.accesses.end(), [&](const trace::AccessRecord& one) {
        const analyzer::AllocationSpan* const span = span_of(one.allocation);
        return span != nullptr && span->id == wanted;
      });
    });
  }

  const plan::Plan& plan_;
  analyzer::CallStream stream_;
  std::vector<Travel> tensors_;
  std::vector<uint32_t> number_;          // of a tensor of the plan: its place in tensors_
  std::vector<const plan::Call*> calls_;  // the program's
  std::vector<uint32_t> before_;          // of a call of the plan: how many of the program's are before it
};

}  // namespace

bool is_made_of(const plan::Plan& plan, const trace::Trace& trace) { return Comparison(plan, trace).agrees(); }

}  // namespace reprise::report

#include "analyzer/iteration/call_stream.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace reprise::analyzer {
namespace {

bool waits(const trace::Order& order) {
  switch (order.record.order) {
    case trace::OrderKind::event_synchronize:
    case trace::OrderKind::stream_synchronize:
    case trace::OrderKind::context_synchronize:
      return true;
    default:
      return false;
  }
}

class CallStreamBuilder {
 public:
  explicit CallStreamBuilder(const trace::Trace& trace) {
    stream_.trace = &trace;
    for (const trace::GapRecord& pause : trace.pauses) {
      if ((pause.header.flags & trace::kGapSeam) != 0) seams_.insert(pause.header.sequence);
    }
  }

  void add(uint32_t index) {
    const trace::Event& event = stream_.trace->events[index];
    if (const auto* allocate = std::get_if<trace::Allocate>(&event)) {
      if (is_managed(allocate->record.origin)) add_allocate(index, allocate->record);
    } else if (const auto* free = std::get_if<trace::Free>(&event)) {
      if (is_managed(free->record.origin)) add_free(index, free->record);
    } else if (const auto* op = std::get_if<trace::Op>(&event)) {
      if ((op->record.header.flags & trace::kOpFailed) != 0) return;
      push(index, kNone);
      waited_ = (op->record.header.flags & trace::kOpSynchronous) != 0;
    } else if (const auto* order = std::get_if<trace::Order>(&event)) {
      if (waits(*order)) waited_ = true;
    }
  }

  CallStream finish() {
    push_boundary();
    return std::move(stream_);
  }

 private:
  void add_allocate(uint32_t index, const trace::AllocateRecord& record) {
    if (stream_.span_of.count(record.allocation) != 0) return;  // recorded when it was made, and at the end of a pause
    if (at_seam(record.header)) {
      const auto before = handed_over_.find({record.address, record.size});
      if (before != handed_over_.end()) stream_.span_of[record.allocation] = before->second;
      if (before != handed_over_.end()) return;
    }
    const auto span = static_cast<uint32_t>(stream_.spans.size());
    push(index, span);
    AllocationSpan entry;
    entry.id = record.allocation;
    entry.size = record.size;
    entry.address = record.address;
    entry.origin = record.origin;
    entry.device = record.device;
    entry.allocated = stream_.size() - 1;
    stream_.spans.push_back(entry);
    stream_.span_of[record.allocation] = span;
    hash_ ^= alive_hash(record.allocation);
    bytes_ += record.size;
  }

  void add_free(uint32_t index, const trace::FreeRecord& record) {
    const auto found = stream_.span_of.find(record.allocation);
    if (found == stream_.span_of.end()) return;  // allocated before the recording began
    AllocationSpan& span = stream_.spans[found->second];
    if (span.freed != kNone) return;
    if (at_seam(record.header)) {
      handed_over_[{span.address, span.size}] = found->second;
      return;
    }
    push(index, found->second);
    span.freed = stream_.size() - 1;
    hash_ ^= alive_hash(span.id);
    bytes_ -= span.size;
  }

  // The plans' iterations have handed the tensor over: to the analyzer, too, it is one.
  bool at_seam(const trace::RecordHeader& header) const {
    return (header.flags & trace::kCaughtUp) != 0 && seams_.count(header.sequence) != 0;
  }

  void push(uint32_t index, uint32_t span) {
    push_boundary();
    waited_ = false;
    stream_.events.push_back(index);
    stream_.allocations.push_back(span);
  }

  void push_boundary() {
    stream_.live_hash.push_back(hash_);
    stream_.live_bytes.push_back(bytes_);
    stream_.after_wait.push_back(waited_ ? 1 : 0);
  }

  CallStream stream_;
  std::set<uint64_t> seams_;                                       // sequences
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> handed_over_;  // by address and size: spans
  uint64_t hash_ = 0;
  uint64_t bytes_ = 0;
  bool waited_ = false;
};

// The first call whose sequence is not below this one.
uint32_t call_at(const CallStream& stream, uint64_t sequence) {
  const auto before = [&](uint32_t event, uint64_t of) { return trace::sequence_of(stream.trace->events[event]) < of; };
  return static_cast<uint32_t>(std::lower_bound(stream.events.begin(), stream.events.end(), sequence, before) -
                               stream.events.begin());
}

// A gap lies between two calls of one thread: those of others in between, and the one behind, are next to it, too.
void find_incomplete(CallStream* stream) {
  std::vector<uint32_t>& calls = stream->incomplete;
  for (const trace::GapRecord& gap : stream->trace->gaps) {
    for (CallIndex call{call_at(*stream, gap.after_sequence + 1)}; call < stream->size(); ++call) {
      calls.push_back(call);
      if (trace::sequence_of(stream->event(call)) >= gap.header.sequence) break;
    }
  }
  for (const trace::GapRecord& pause : stream->trace->pauses) {
    const uint32_t first = call_at(*stream, pause.after_sequence + 1);
    if ((pause.header.flags & trace::kGapSeam) != 0 && first == call_at(*stream, pause.header.sequence)) {
      stream->seams.push_back(first);
      continue;
    }
    // What brings the live set up to date stands for no call of the program.
    const uint32_t end = call_at(*stream, pause.header.sequence + 1);
    for (CallIndex call{first}; call < end; ++call) calls.push_back(call);
  }
  std::sort(stream->seams.begin(), stream->seams.end());
  std::sort(calls.begin(), calls.end());
  calls.erase(std::unique(calls.begin(), calls.end()), calls.end());
}

}  // namespace

CallStream make_call_stream(const trace::Trace& trace) {
  CallStreamBuilder builder(trace);
  for (uint32_t index = 0; index < trace.events.size(); ++index) builder.add(index);
  CallStream stream = builder.finish();
  find_incomplete(&stream);
  return stream;
}

}  // namespace reprise::analyzer

#include "analyzer/iteration/call_stream.h"

#include <algorithm>

#include "preload/trace/signature.h"

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
  explicit CallStreamBuilder(const trace::Trace& trace) { stream_.trace = &trace; }

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
    const auto span = static_cast<uint32_t>(stream_.spans.size());
    push(index, span);
    AllocationSpan entry;
    entry.id = record.allocation;
    entry.size = record.size;
    entry.origin = record.origin;
    entry.device = record.device;
    entry.allocated = stream_.size() - 1;
    stream_.spans.push_back(entry);
    stream_.span_of[record.allocation] = span;
    hash_ ^= trace::hash_mix(0x452821e638d01377ull, record.allocation);
    bytes_ += record.size;
  }

  void add_free(uint32_t index, const trace::FreeRecord& record) {
    const auto found = stream_.span_of.find(record.allocation);
    if (found == stream_.span_of.end()) return;  // allocated before the recording began
    AllocationSpan& span = stream_.spans[found->second];
    if (span.freed != kNone) return;
    push(index, found->second);
    span.freed = stream_.size() - 1;
    hash_ ^= trace::hash_mix(0x452821e638d01377ull, record.allocation);
    bytes_ -= span.size;
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
  uint64_t hash_ = 0;
  uint64_t bytes_ = 0;
  bool waited_ = false;
};

// A gap lies between two calls of one thread: those of others in between, and the one behind, are next to it, too.
void find_incomplete(CallStream* stream) {
  std::vector<uint32_t>& calls = stream->incomplete;
  for (const trace::GapRecord& gap : stream->trace->gaps) {
    const auto before = [&](uint32_t event, uint64_t sequence) {
      return trace::sequence_of(stream->trace->events[event]) < sequence;
    };
    const auto first = std::lower_bound(stream->events.begin(), stream->events.end(), gap.after_sequence + 1, before) -
                       stream->events.begin();
    for (auto call = static_cast<uint32_t>(first); call < stream->size(); ++call) {
      calls.push_back(call);
      if (trace::sequence_of(stream->event(call)) >= gap.header.sequence) break;
    }
  }
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

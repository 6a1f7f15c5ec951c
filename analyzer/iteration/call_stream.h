// The calls of a trace that make up iterations: allocations, frees and ops of memory that Reprise manages. Event and
// synchronisation calls are not among them. Used by the iteration finder and the TaskGraph builder.
#pragma once
#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/base/indices.h"
#include "preload/trace/reader.h"
#include "preload/trace/signature.h"

namespace reprise::analyzer {

struct AllocationSpan {
  uint64_t id = 0;
  uint64_t size = 0;
  uint64_t address = 0;
  trace::Origin origin = trace::Origin::alloc;
  uint16_t device = 0;
  uint32_t allocated = 0;  // call index
  uint32_t freed = kNone;  // call index; kNone: still alive at the end of the trace
};

struct CallStream {
  const trace::Trace* trace = nullptr;             // not owned
  std::vector<uint32_t> events;                    // call -> index into trace->events
  std::vector<uint32_t> allocations;               // call -> index into spans, of allocate and free; kNone for ops
  std::vector<AllocationSpan> spans;               // managed allocations in order of allocation
  std::unordered_map<uint64_t, uint32_t> span_of;  // allocation id -> index into spans; of those handed over, too
  std::vector<uint64_t> live_hash;                 // call -> hash of the set alive before it; one more at the end
  std::vector<uint64_t> live_bytes;                // likewise
  std::vector<uint8_t> after_wait;                 // call -> the host waited for the device just before it; one more
  std::vector<uint32_t> incomplete;                // calls at which records are missing, ascending: in no iteration
  std::vector<uint32_t> seams;  // calls before which the recording paused, ascending: within no iteration

  uint32_t size() const { return static_cast<uint32_t>(events.size()); }
  const trace::Event& event(CallIndex call) const { return trace->events[events[call]]; }
  // The op of a call, or nullptr.
  const trace::Op* op(CallIndex call) const { return std::get_if<trace::Op>(&event(call)); }
  // Device time of an op; 0: none was recorded.
  uint64_t recorded_ns(const trace::Op& of) const {
    const auto found = trace->activities.find(of.record.header.sequence);
    if (found == trace->activities.end() || found->second.end_ns <= found->second.start_ns) return 0;
    return found->second.end_ns - found->second.start_ns;
  }
};

// Calls from its allocation to its free or, where it is alive to the end, to the end of the trace.
inline uint64_t lifetime_of(const CallStream& stream, const AllocationSpan& span) {
  return (span.freed == kNone ? stream.size() : span.freed) - uint64_t{span.allocated};
}

// Were the calls [begin, end) recorded without a pause between them?
inline bool contiguous(const CallStream& stream, uint32_t begin, uint32_t end) {
  const auto seam = std::upper_bound(stream.seams.begin(), stream.seams.end(), begin);
  return seam == stream.seams.end() || *seam >= end;
}

// What the allocation with this id contributes to CallStream::live_hash, by exclusive or.
inline uint64_t alive_hash(uint64_t id) { return trace::hash_mix(0x452821e638d01377ull, id); }

// `trace` must outlive the result. Ops that the driver refused are left out: they did nothing.
CallStream make_call_stream(const trace::Trace& trace);

}  // namespace reprise::analyzer

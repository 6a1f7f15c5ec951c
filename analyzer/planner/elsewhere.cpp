#include "analyzer/planner/elsewhere.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "preload/footprint/footprint.h"
#include "preload/footprint/slab.h"
#include "preload/trace/names.h"

namespace reprise::analyzer {
namespace {

// Which allocations are alive, and where small ones lie, from call to call.
class Alive {
 public:
  Alive(const CallStream& stream, uint64_t chunk_bytes) : stream_(stream), chunk_bytes_(chunk_bytes) {
    constexpr uint64_t kBase = uint64_t{1} << 46;  // 0 is no address
    slab_.reset(kBase, kBase, chunk_bytes);
    places_.assign(stream.spans.size(), 0);
  }

  void pass(CallIndex call, uint32_t index) {
    const AllocationSpan& span = stream_.spans[index];
    const bool small = footprint::is_small(span.size, chunk_bytes_);
    if (span.allocated == call) {
      if (small) places_[index] = slab_.allocate(span.size);
      alive_.insert(index);
      return;
    }
    if (small && places_[index] != 0) slab_.release(places_[index], span.size);
    alive_.erase(index);
  }

  // Returns the chunk bytes of these allocations on the device that holds most of them; each allocation counts once.
  uint64_t bytes_of(const std::set<uint32_t>& spans) const {
    std::vector<uint64_t> chunks;  // by device
    std::set<std::pair<uint16_t, uint64_t>> blocks;
    for (const uint32_t index : spans) {
      const AllocationSpan& span = stream_.spans[index];
      if (chunks.size() <= span.device) chunks.resize(span.device + 1u, 0);
      const bool small = footprint::is_small(span.size, chunk_bytes_);
      if (!small) chunks[span.device] += (span.size + chunk_bytes_ - 1) / chunk_bytes_;
      if (small && blocks.insert({span.device, places_[index] / chunk_bytes_}).second) ++chunks[span.device];
    }
    return chunks.empty() ? 0 : *std::max_element(chunks.begin(), chunks.end()) * chunk_bytes_;
  }

  const std::set<uint32_t>& all() const { return alive_; }

 private:
  const CallStream& stream_;
  const uint64_t chunk_bytes_;
  footprint::Slab slab_;
  std::vector<uint64_t> places_;  // by span; 0: none
  std::set<uint32_t> alive_;      // spans
};

std::set<uint32_t> operands_of(const CallStream& stream, const trace::Op& op) {
  std::set<uint32_t> spans;
  for (const trace::AccessRecord& access : op.accesses) {
    const auto span = stream.span_of.find(access.allocation);
    if (span != stream.span_of.end()) spans.insert(span->second);
  }
  return spans;
}

std::string name_of(const trace::Trace& trace, const trace::Op& op) {
  const uint32_t function = op.record.function;
  const bool known = function >= 1 && function <= trace.functions.size();
  return known ? trace::shown_name(trace.functions[function - 1].name) : std::string(trace::name_of(op.record.op));
}

}  // namespace

LargestCall largest_call(const CallStream& stream, uint64_t chunk_bytes) {
  Alive alive(stream, chunk_bytes);
  LargestCall largest;
  for (CallIndex call{0}; call < stream.size(); ++call) {
    const uint32_t index = stream.allocations[call];
    if (index != kNone) alive.pass(call, index);
    const trace::Op* const op = stream.op(call);
    if (op == nullptr) continue;
    const bool opaque = (op->record.header.flags & trace::kOpOpaque) != 0;
    const uint64_t bytes = alive.bytes_of(opaque ? alive.all() : operands_of(stream, *op));
    if (bytes > largest.bytes) largest = {name_of(*stream.trace, *op), bytes};
  }
  return largest;
}

}  // namespace reprise::analyzer

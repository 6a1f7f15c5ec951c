#include "analyzer/taskgraph/footprint.h"

#include <algorithm>

#include "preload/footprint/footprint.h"

namespace reprise::analyzer {

uint64_t peak_footprint(const CallStream& stream, uint64_t chunk_bytes) {
  footprint::Footprint footprint;
  footprint.open(chunk_bytes);
  uint64_t peak = 0;
  for (CallIndex call{0}; call < stream.size(); ++call) {
    const uint32_t index = stream.allocations[call];
    if (index == kNone) continue;
    const AllocationSpan& span = stream.spans[index];
    if (span.allocated == call) {
      footprint.allocated(index, span.size);
      peak = std::max(peak, footprint.bytes());
    } else {
      footprint.freed(index, span.size);
    }
  }
  return peak;
}

}  // namespace reprise::analyzer

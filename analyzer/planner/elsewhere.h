// What the whole of a recording needs, beside the iteration that is planned: a call outside of it runs on demand, with
// all its operands on the device at once. Caller: Planning, for `reprise plan`, which says where that is more than the
// budget leaves.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/iteration/call_stream.h"

namespace reprise::analyzer {

struct LargestCall {
  std::string name;    // as it is shown; empty: no call works on memory that is managed
  uint64_t bytes = 0;  // of the chunks that it works on at once
};

// By the rule of runs: whole chunks, small allocations in blocks. An opaque call works on whatever is alive.
LargestCall largest_call(const CallStream& stream, uint64_t chunk_bytes);

}  // namespace reprise::analyzer

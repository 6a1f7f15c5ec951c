// What the whole of a recording asks of a budget, beside the iteration that a plan is of: a call outside of it runs on
// demand, with all that it works on on the device at once. Caller: `reprise plan`, which says where that is more than
// the budget leaves.
#pragma once
#include <cstdint>
#include <string>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

struct LargestCall {
  std::string name;    // as it is shown; empty: no call works on memory that is managed
  uint64_t bytes = 0;  // of the chunks that it works on at once
};

// By the rule of runs: whole chunks, small allocations in blocks. An opaque call works on whatever is alive.
LargestCall largest_call(const trace::Trace& trace, uint64_t chunk_bytes);

}  // namespace reprise::analyzer

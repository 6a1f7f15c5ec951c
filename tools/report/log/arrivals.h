// How much came back to the device while no plan was in force, and how little could have for the same calls in the same
// order. Caller: the report's sentence of looking ahead.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {

struct Arrivals {
  uint64_t came = 0;   // chunks
  uint64_t least = 0;  // ... if always leaves what is needed furthest in the future (L. A. Belady, 1966)
};

// Behind the first line with nearly the most room: a percentage's rises while the first iteration allocates.
Arrivals arrivals_of(const std::vector<RunCalls>& lines);

}  // namespace reprise::report

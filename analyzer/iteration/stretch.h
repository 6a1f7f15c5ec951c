// The last part of a recording as one of its own: what a program that has plans already does besides. Caller: `reprise
// plan --from`.
#pragma once
#include <cstdint>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

// Of the calls before `sequence` only the allocations that are alive then are left, as if the program had begun with
// them.
trace::Trace stretch_from(trace::Trace trace, uint64_t sequence);

}  // namespace reprise::analyzer

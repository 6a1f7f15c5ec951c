// The last part of a recording as one of its own: what a program that has plans already does besides. Caller: `reprise
// plan --from`.
#pragma once
#include <cstdint>

#include "preload/trace/reader.h"

namespace reprise::analyzer {

// Of the calls before `sequence` only the allocations that are alive then are left, as if the program had begun with
// them.
trace::Trace stretch_from(trace::Trace trace, uint64_t sequence);

// Only what was called before `sequence`, with all that is known of how long it took: as the recording was then.
trace::Trace stretch_until(trace::Trace trace, uint64_t sequence);

}  // namespace reprise::analyzer

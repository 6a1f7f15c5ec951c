// What a recorded program takes of a device without Reprise: the same rule, and so the same 100 %, as the replay's
// (preload/footprint). Called when a Workload is made of a trace.
#pragma once
#include <cstdint>

#include "analyzer/iteration/call_stream.h"

namespace reprise::analyzer {

// The peak over the whole recording, in chunks of `chunk_bytes`.
uint64_t peak_footprint(const CallStream& stream, uint64_t chunk_bytes);

}  // namespace reprise::analyzer

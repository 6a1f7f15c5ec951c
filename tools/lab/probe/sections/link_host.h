// The host's side of section 4: how fast memory can be pinned, and what the disk carries. Caller: sections/link.cpp.
#pragma once
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// cuMemHostAlloc against mapped, touched by 1-16 threads and registered memory.
Status measure_pinning(SectionContext& context, const Limit& limit);
// Reads and writes of a file in options.scratch, by request size, depth and method; the machine file's SSD.
Status measure_disk(SectionContext& context, const Limit& limit);

}  // namespace reprise::probe

// How a recording ended, without reading all of it: the chunks' headers and the last chunk. Caller: `reprise record`.
#pragma once
#include <cstdint>
#include <string>

#include "preload/trace/status.h"

namespace reprise::trace {

struct Ending {
  bool ended = false;       // the program came to its end, and the recording with it
  uint64_t dropped = 0;     // records that were lost on the way
  uint32_t stopped_by = 0;  // errno of a write that failed, behind which nothing was recorded; 0: none
};

// Not ok for what is no trace.
Result<Ending> read_ending(const std::string& path);

}  // namespace reprise::trace

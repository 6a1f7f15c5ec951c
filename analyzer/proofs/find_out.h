// Code facts of the kernels that a recording launches: what the cache lacks is made of the images that the recording
// names. Caller: `reprise plan`, before it plans.
#pragma once
#include <cstddef>
#include <string>

#include "preload/trace/reader.h"
#include "preload/trace/status.h"

namespace reprise::code {

struct FoundOut {
  size_t made = 0;  // kernels whose facts were kept now
  size_t left = 0;  // ... of which nothing was found out yet, for want of time
  Status problem;   // the first one: without it there would be more
};

// `facts`: the folder of kernel facts. Begins with no further image after `seconds`. `named`: nvdisasm
// (REPRISE_NVDISASM); empty: it is looked for.
FoundOut find_out(const trace::Trace& trace, const std::string& facts, const std::string& named, double seconds);

}  // namespace reprise::code

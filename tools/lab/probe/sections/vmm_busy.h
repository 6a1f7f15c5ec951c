// VMM calls while the GPU works: another thread launches short kernels all the time. Reports whether its launches wait
// for the calls and whether its kernels stall. Caller: section 2.
#pragma once
#include <functional>

#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// Runs `work` beside the launching thread; reports the launches' latency and the kernels' rate with and without `work`.
Status with_busy_gpu(SectionContext& context, const std::function<Status(SectionContext&)>& work);

}  // namespace reprise::probe

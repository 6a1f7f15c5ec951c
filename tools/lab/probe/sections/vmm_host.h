// Host memory under virtual memory management: chunks on the device's NUMA node. Caller: section 2.
#pragma once
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// Cost of creating and mapping; the copy engines' rate from and to such mappings; kernels reading through them.
Status measure_host_mappings(SectionContext& context);

}  // namespace reprise::probe

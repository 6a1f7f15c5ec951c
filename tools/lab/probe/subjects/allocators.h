// Which calls of the driver frameworks' allocators make, by the variables that choose an allocator: Reprise sees
// tensors only where each one is asked of the driver. Caller: section 6.
#pragma once
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// A fact for each framework and choice: what the program says (its back-end, how many tensors) and the calls by name.
// The launcher's own choice is among them.
Status report_allocators(SectionContext& context);

}  // namespace reprise::probe

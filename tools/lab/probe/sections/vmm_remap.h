// What a replay pays to give an address other memory: part of section 2, and a number of the machine file. Caller:
// sections/vmm.cpp.
#pragma once
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// One chunk of the planner's default size after another: unmap, map another one there, set access. `busy`: kernels are
// running, as they do in a replay; the machine file then takes this number, not that of an idle device.
Status measure_remaps(SectionContext& context, const Limit& limit, bool busy);

}  // namespace reprise::probe

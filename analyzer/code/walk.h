// Follows control through a kernel until nothing new is learnt: what each block finds in registers, for each place that
// called it. Then runs each block once more, to collect accesses. Callers: analyse().
#pragma once

namespace reprise::code {

class KernelMachine;

// A doubt of the machine says that it did not come to an end.
void walk(KernelMachine& machine);

}  // namespace reprise::code

// What the machine code of kernels says of their operands, for those without a twin: the simulated device does what it
// says (dataflow hashing). Read from the cache of code facts, else made here and kept there, by the same analysis as
// the planner's: what tests that analysis is the interpreter in tests/code, not this device. Caller: launches.
#pragma once
#include "analyzer/code/facts.h"
#include "tools/device/modules/module.h"

namespace reprise::sim {

// nullptr: its code is not known, and it reads and writes all that it is given. Takes half a second the first time.
const code::CodeFacts* code_of(const Function& function);

}  // namespace reprise::sim

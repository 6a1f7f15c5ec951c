// Does a program with the shim in it still run under cuda-gdb, and does cuda-gdb still stop in its kernels? It finds
// the driver inside the program by symbols, which a library that calls itself libcuda.so.1 might stand in front of.
// Caller: section 1.
#pragma once
#include "tools/lab/probe/output/section.h"

namespace reprise::probe {

// A fact for cuda-gdb without the shim and one with it, so that the shim is not blamed for what fails without it.
Status report_debugger(SectionContext& context);

}  // namespace reprise::probe

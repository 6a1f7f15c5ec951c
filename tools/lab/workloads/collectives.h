// Collectives of tensor parallelism out of what a task graph has: transfers between two devices, and kernels that sum.
// A value that is spread over devices is a list of pieces for each of them. Called by the LLaMA workloads.
#pragma once
#include <string>
#include <vector>

#include "tools/lab/workloads/builder.h"

namespace reprise::tools::workloads {

using Spread = std::vector<Tensors>;  // device -> pieces on it

// `own[d]` is device d's piece of a value; afterwards every device has all pieces.
Spread all_gather(Builder& builder, const Tensors& own);

// `partial[d][s]` is what device d adds to piece s. Every piece is summed on the device of its number, then gathered.
// With one device nothing happens.
Spread all_reduce(Builder& builder, const std::string& name, const Spread& partial);

}  // namespace reprise::tools::workloads

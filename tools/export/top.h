// What costs most, as text: `reprise top`.
#pragma once
#include <string>

#include "tools/report/report.h"

namespace reprise::exports {

// Three tables of ten lines: call sites by what they hold at most, tensors (of a plan by what computing waits for them,
// else the largest when most is alive), kernels by their time. Those that the files say nothing of are left out.
std::string top_text(const report::Inputs& inputs);

}  // namespace reprise::exports

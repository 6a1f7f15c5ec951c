// Was a plan made of this very recording? It names tensors by the numbers that allocations have there, and so do call
// stacks; another recording of the same loop may have other numbers. Called where files are checked.
#pragma once
#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"

namespace reprise::report {

// The calls of the plan's iteration stand in the trace, with the plan's allocations. A recording of the same program
// that has them at the same numbers is as good. Where the trace is cut short before them, only what lives from one
// iteration to the next can be compared.
bool is_made_of(const plan::Plan& plan, const trace::Trace& trace);

}  // namespace reprise::report

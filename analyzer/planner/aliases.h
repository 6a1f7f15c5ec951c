// Aliases, for audited safety: which tensors of a plan keep their ranges mapped while their bytes are away. Called by
// the planner when a plan is made; the verifier checks the result by itself.
#pragma once
#include "analyzer/plan/plan.h"

namespace reprise::analyzer {

// A tensor may keep its range where, between each two of its uses between which it moves, only ops run that touch
// nothing but their operands. One that the program allocates in the iteration is taken to be away until its first use
// and from its last one on. Only at its home: a remap is another mapping.
void set_aliases(plan::Plan& plan);

}  // namespace reprise::analyzer

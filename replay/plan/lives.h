// Tensors with several lives. A plan that recomputes names each life of a tensor as a tensor of its own, and begins and
// ends them by inserted calls. For the replay they are one tensor at one address, that is dropped and made again.
// Caller: make_plan_index.
//
//     plan      allocate A | launch writes A | free A (inserted) ... allocate B (inserted) | launch again writes B |
//     free B replay    allocate A | launch writes A | drop A            ...                       | repeat: A is there
//     | free A
#pragma once
#include "replay/plan/plan_index.h"

namespace reprise::replay {

// Of a plan whose releases wait for all that uses their tensors: renames the later lives to the first one, and fills
// what PlanIndex says of recompute. Adds the edges that the lives of one tensor need between them.
void fold_lives(PlanIndex* plan_index);

}  // namespace reprise::replay

// G10's plan for one iteration (MICRO 2023, Algorithm 1): the periods in which tensors are not used, which of them are
// spent away from the device, on which tier, and when the reload begins. Used by g10.cpp only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/policies/planned_periods.h"

namespace reprise::analyzer {

// Times as the links were booked; `reload_begin`: the op at which the reload must begin.
struct G10Period : AwayPeriod {
  bool away = false;
  OpIndex earliest_reload_begin = {};  // the op from which on there is room for it
};

struct G10Plan {
  std::vector<G10Period> periods;  // those that are spent away
  ByOp<CallIndex> call_of_op;
};

// `capacity`: chunks.
G10Plan plan_g10(const TaskGraph& graph, const Machine& machine, uint64_t capacity);

}  // namespace reprise::analyzer

// G10's plan for one iteration (MICRO 2023, Algorithm 1): the periods in which tensors are not used, which of them are
// spent away from the device, on which tier, and when the way back begins. Used by g10.cpp only.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/memgraph/schedule.h"

namespace reprise::analyzer {

// Between two uses of a tensor. Times are op numbers; those of the next iteration go on counting.
struct G10Period {
  uint32_t tensor = kNone;
  uint32_t begin = 0;  // the op behind the use before
  uint32_t end = 0;    // the op of the use behind
  bool away = false;
  Tier tier = Tier::host;
  uint32_t gone = 0;   // the op during which the copy out ends, as booked
  uint32_t fetch = 0;  // the op at which the way back must begin
  uint32_t eager = 0;  // the op from which on there is room for it
};

struct G10Plan {
  std::vector<G10Period> periods;    // those that are spent away
  std::vector<uint32_t> call_of_op;  // op number -> call
};

// `capacity`: chunks.
G10Plan plan_g10(const TaskGraph& graph, const Machine& machine, uint64_t capacity);

}  // namespace reprise::analyzer

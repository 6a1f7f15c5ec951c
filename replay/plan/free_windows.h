// When the program may free a tensor: a plan has each free at one call, but a garbage collector or another thread makes
// it sooner or later. Between the tensor's last use and the next need of its place any call will do. Callers:
// make_plan_index, CallCursor.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/plan/plan.h"

namespace reprise::replay {

struct PlanIndex;

// By call; a call of iteration i has the position i * calls + its index.
struct FreeWindow {
  uint32_t behind = plan::kNone;  // it may come when this call has; kNone: not before its turn
  uint32_t until = 0;             // and has to before the call at this position, counted from its own iteration
};

// For frees of the program that are a vertex; other calls get {kNone, 0}. The plan's edges have been inverted.
std::vector<FreeWindow> free_windows(const PlanIndex& plan_index);

}  // namespace reprise::replay

// What is an iteration, and what next to nothing. Called by the planner and by the enforcer, which asks it.
#pragma once
#include <cstdint>

namespace reprise::plan {

// Of what was recorded, in %: what covers less is no iteration to plan, for nearly all would go on without a plan.
inline constexpr uint32_t kLeastShare = 2;

}  // namespace reprise::plan

// What a plan does with each of the program's tensors in an iteration, and with all of them together. Called by the
// table of totals and by the comparison of plans.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/plan/plan.h"

namespace reprise::report {

struct Travel {
  uint32_t tensor = 0;      // in the plan: its first life, its first part
  uint64_t allocation = 0;  // of the recording
  uint64_t bytes = 0;
  uint64_t out_bytes = 0;  // copied to the host
  uint64_t in_bytes = 0;
  uint64_t spared_bytes = 0;   // left without a copy, as the host has the same
  uint64_t dropped_bytes = 0;  // and computed again
};

// One a tensor of the program, in its order, which is that of all plans of an iteration: further lives, which recompute
// gives it, and parts count with it.
std::vector<Travel> travels_of(const plan::Plan& plan);

// Of each tensor of the plan: the place in the above of the program's tensor that it is a life or a part of.
std::vector<uint32_t> numbers_of(const plan::Plan& plan);

// What the plan leaves to comparisons and to recompute.
struct Spared {
  uint64_t clean_bytes = 0;
  uint64_t dropped_bytes = 0;
  uint64_t launches = 0;
  uint64_t launch_ns = 0;
};
Spared spared_by(const plan::Plan& plan);

}  // namespace reprise::report

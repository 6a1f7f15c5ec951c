// Two plans that are to be compared, and their recording where it is among the files. Called by `report`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "tools/report/inputs.h"

namespace reprise::tools {

struct TwoPlans {
  struct One {
    std::string path;
    plan::Plan plan;
    uint64_t bound_ns = 0;  // what no plan for its budget can beat; 0: not known
  };
  std::vector<One> plans;             // in the order in which they were named
  std::optional<trace::Trace> trace;  // with functions and lines
  CutShort cut_short;                 // of the trace
};

// Are the files two plans, and at most a trace?
bool are_two_plans(const std::vector<std::string>& paths);
// Errors name the file, or say that they do not belong together.
Status load(const std::vector<std::string>& paths, TwoPlans& files);

}  // namespace reprise::tools

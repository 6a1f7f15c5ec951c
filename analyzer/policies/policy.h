// A policy decides which tensors leave the device when memory is short. One file per policy, named after its source.
// Callers: the planner, which runs a portfolio of them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/schedule/schedule.h"
#include "analyzer/taskgraph/graph.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

struct PolicyInput {
  const TaskGraph& graph;
  const Machine& machine;
  uint64_t capacity = 0;       // chunks that may be occupied at once; at least the largest working set
  bool carry_visitors = true;  // see WalkOptions
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  // The same input gives the same schedule.
  virtual Schedule schedule(const PolicyInput& input) const = 0;
};

const Policy& disco_policy();
const Policy& fluid_policy();
const Policy& g10_policy();
const Policy& g10_late_policy();
const Policy& gemini_policy();
const Policy& link_aware_policy();
const Policy& lru_policy();
const Policy& reprise_policy();
// Baselines: what others do, for comparison.
const Policy& deepum_policy();
const Policy& flashneuron_policy();
const Policy& uvm_policy();

// What `reprise` compares: other policies, as they are and played in time.
const std::vector<const Policy*>& reprise_members();

// Policies whose schedules are good ones to start a search from.
const std::vector<const Policy*>& searched_policies();

// Those of the portfolio, in the order in which it tries them.
const std::vector<const Policy*>& all_policies();
// Systems that the portfolio leaves out: they cost time and cannot win.
const std::vector<const Policy*>& baseline_policies();
// nullptr when there is none of this name.
const Policy* find_policy(std::string_view name);
// "auto", the portfolio's, the baselines'.
std::vector<std::string> known_policies();
// "auto" and "reprise" compare what other policies plan, and search; all others plan at once.
bool searches(std::string_view name);
// Ok for "auto" and for the name of a policy; else an error that lists them.
Status check_policy(std::string_view name);

}  // namespace reprise::analyzer

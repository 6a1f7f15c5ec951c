// Which op makes a tensor and which ops use it, as recompute needs it; to write means to change bytes here. Used by
// recompute_candidates.cpp and analyzer/rewrite/recompute.cpp.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

class RecomputeUses {
 public:
  explicit RecomputeUses(const TaskGraph& graph);

  // The op that alone writes a tensor, and is the first to touch it; kNone: persistent, or not so.
  CallIndex maker(uint32_t tensor) const { return maker_[tensor]; }
  // Calls of ops that use the tensor, ascending.
  const std::vector<CallIndex>& uses(uint32_t tensor) const { return uses_[tensor]; }
  // May the op be recomputed at all? It is pure, and it alone makes all that it writes.
  bool repeatable(CallIndex call) const { return repeatable_[call] != 0; }
  // The longest time in which an output of the op is not used, and the call that ends it; kNone: there is none.
  struct Idle {
    CallIndex before{kNone};
    uint64_t ns = 0;
  };
  Idle longest_idle(CallIndex call) const;
  // From the end of call `from` to the start of call `to`, without stalls.
  uint64_t time_between(CallIndex from, CallIndex to) const { return start_ns_[to] - start_ns_[from + 1]; }
  // Does an op write the tensor behind `after` and before `before`?
  bool written_between(uint32_t tensor, CallIndex after, CallIndex before) const;
  // The program still needs what is in the tensor at `call`.
  bool needed_at(uint32_t tensor, CallIndex call) const {
    return is_persistent(graph_.tensors[tensor]) || (!uses_[tensor].empty() && uses_[tensor].back() >= call);
  }

 private:
  void record_unseen_writes(CallIndex call);

  const TaskGraph& graph_;
  std::vector<std::vector<CallIndex>> uses_;
  std::vector<std::vector<CallIndex>> writes_;
  std::vector<CallIndex> maker_;
  ByCall<uint8_t> repeatable_;
  ByCall<uint64_t> start_ns_;  // of each call, one more at the end
};

}  // namespace reprise::analyzer

// Which ops may be launched again so that what they made need not stay, or travel: recompute by re-launch. Called by
// the choice of what to recompute, and by rewrite.h.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// An op whose outputs are left to be forgotten for a while: they are made again just before `before` needs one of them.
struct Relaunch {
  uint32_t call = kNone;         // the op
  uint32_t before = kNone;       // the call of the first op behind the longest time in which an output is not used
  uint64_t bytes = 0;            // of outputs that are not used meanwhile
  uint64_t idle_ns = 0;          // for how long, without stalls
  uint64_t cost_ns = 0;          // of the op, and of those below
  std::vector<uint32_t> others;  // ops that must run again, too, because what they made is gone by then
};

// Candidates, by call. A candidate is pure; it alone writes its outputs, which the program allocates and frees within
// the iteration; and what it reads still has the same values at `before`, or can be made again likewise.
std::vector<Relaunch> relaunch_candidates(const TaskGraph& graph);

}  // namespace reprise::analyzer

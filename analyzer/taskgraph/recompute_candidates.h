// Which ops may be recomputed, that is launched again, so that their outputs need neither stay on the device nor travel
// to the host and back. Called by analyzer/rewrite/choose_recompute.cpp and for the fluid bound.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// An op whose outputs are dropped for a while, and recomputed just before the call `before` needs one of them.
struct RecomputeCandidate {
  CallIndex call{kNone};          // the op
  CallIndex before{kNone};        // the call of the first op behind the longest time in which an output is not used
  uint64_t bytes = 0;             // of outputs that are not used meanwhile
  uint64_t idle_ns = 0;           // for how long, without stalls
  uint64_t cost_ns = 0;           // of the op, and of those below
  std::vector<CallIndex> others;  // ops to recompute with it: it reads their outputs, which are freed by then
};

// Candidates, by call. A candidate is pure; it alone writes its outputs, which the program allocates and frees within
// the iteration; and what it reads still has the same values at `before`, or can be recomputed likewise.
std::vector<RecomputeCandidate> recompute_candidates(const TaskGraph& graph);

}  // namespace reprise::analyzer

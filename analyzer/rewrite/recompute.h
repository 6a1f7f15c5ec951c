// A TaskGraph in which chosen ops are recomputed: their outputs are freed after their last use before that, and
// allocated anew. The result is a graph like any other. Called by the planner's variants and choose_recompute.cpp.
//
//   program     allocate x   make x   use x            ...                               use x    free x
//   result      allocate x   make x   use x   +free x  ...  +allocate x' +make x (again)  use x'   free x'
//
// All calls of the program stay, in its order; what has a + is inserted. The last life of a tensor ends with the
// program's free, which names it; where a recompute needs the bytes behind that, the program's free is a late_free and
// an inserted one behind the last use ends the life. Small tensors have one life: a recompute writes the same bytes to
// the same place again, and they live at least until then.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/machine/machine.h"
#include "analyzer/taskgraph/graph.h"

namespace reprise::analyzer {

// `calls`: calls of candidates (recompute_candidates.h), ascending. Ops that they need are added. An op that two others
// need again is recomputed once, before the first of them.
// `guarded`: with it, a recompute takes the time of its digests, too (decision 0031): what it makes is read twice more,
// and so is what it reads, but for what shows itself (decision 0035).
TaskGraph with_recompute(const TaskGraph& graph, const std::vector<uint32_t>& calls, const Machine* guarded = nullptr);

// That time, where `again` is launched to recompute `first`.
uint64_t recompute_guards_ns(const TaskGraph& graph, const plan::Call& first, const plan::Call& again,
                             const Machine& machine);

}  // namespace reprise::analyzer

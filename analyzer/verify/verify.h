// The verifier: proves from the plan alone that no topological order of its edges loses a byte, reads a stale one,
// needs more memory than the plan has, or deadlocks. Shares no code with the planner. Callers: the planner (every plan
// it returns has passed), `reprise plan --check`, property tests.
#pragma once
#include "analyzer/plan/plan.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

// What is checked, over two iterations unrolled: acyclic (V1); every pair of conflicting accesses is ordered as in the
// program, copies spliced in (V2, V5); a chunk's next occupant waits for every vertex that used the one before, and for
// the program's free where no host copy is valid (V3); operands are resident in their current version (V4); chunks and
// slab bytes are within the plan's, never shared by two live tensors (V6); nothing needs a later call of the program
// (V7); the end state is the start state (V8); a tensor that stays mapped while it is away is not away while an op runs
// that may touch it unseen. Not ok (internal): one line that names tensors, vertices and what they
// are, chunks, and a legal order of vertices in which it goes wrong, as in "tensor 41 may be overwritten by 97 (reload
// of tensor 12) before 88 (call 55, matmul) reads it, through chunk 12; a legal order that breaks it runs 95, 97 and
// only then 88".
Status verify(const plan::Plan& plan);

}  // namespace reprise::analyzer

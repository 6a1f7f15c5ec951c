// Recordings of programs whose sizes differ from iteration to iteration, as with sequences of any length. Iterations
// are equal where a call is of the same kind and touches the same tensors; the plan is made of one in which each tensor
// has the largest size that it had in any. Caller: find_loop_in().
#pragma once
#include <optional>

#include "analyzer/loop/found_loop.h"

namespace reprise::analyzer {

// The loop with Iteration::sizes_vary, in a recording of its own:
// - an allocation has the largest size of those at its place of the iteration, and of `sizes`;
// - an op's signature is its structure (preload/trace/signature.h), and it takes as long as the longest at its place;
// - an access that is to another part each time has plan::kAccessMoves; one up to its tensor's end has size 0;
// - a launch of different kernels names none.
// nullopt: there is none, or its iterations differ in nothing of that.
std::optional<FoundLoop> with_even_sizes(const CallStream& recorded, const FindIteration& find,
                                         const LeastSizes& sizes = {});

}  // namespace reprise::analyzer

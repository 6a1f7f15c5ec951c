// Are two stretches of a trace the same iteration? Exact, call by call; hashes only propose.
#pragma once
#include <cstdint>

#include "analyzer/iteration/call_stream.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

// The span whose place `span` takes: allocated one period earlier by the corresponding call, of the same size, and
// freed before `span` was allocated, so that both can have one address. kNone: there is none.
uint32_t handed_over_from(const CallStream& stream, const AllocationSpan& span, uint32_t period);

// Compares calls [first, first + count) with [second, second + count), second >= first + count, under the tensor
// mapping "alive before both: the same allocation; allocated inside, or one period before: the one allocated by the
// corresponding call". Also the live set must be the same before the first, before the second, and after the second,
// but for tensors that were handed over (handed_over_from). Not ok: the first difference. `parts_move`: a call may work
// on another part of the same tensor.
Status check_isomorphic(const CallStream& stream, uint32_t first, uint32_t second, uint32_t count,
                        bool parts_move = false);

// For an iteration [first, first + count) of several periods, in which tensors that outlive one take turns: each of its
// calls equals the one a period earlier, under the mapping "the same allocation, or the one allocated by the call a
// period earlier", and the live set is the same before and behind it but for tensors that were handed over. So
// one period more than it has is enough to know it. first >= period; count is a multiple of period.
Status check_turns(const CallStream& stream, uint32_t first, uint32_t period, uint32_t count);

}  // namespace reprise::analyzer

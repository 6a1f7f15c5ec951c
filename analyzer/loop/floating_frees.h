// Recordings of programs that free in another order each time: a garbage collector, another thread, the order of a set.
// Iterations are equal where each free stands right behind the last use of its tensor; a plan is made of one in which
// each stands where it came latest. Caller:
// find_loop_in().
#pragma once
#include <optional>

#include "analyzer/loop/found_loop.h"

namespace reprise::analyzer {

// The same calls; a free follows the last op before it that uses its tensor, or the allocation. None moves across a
// place where records are missing or the recording paused.
CallStream frees_at_last_use(const CallStream& recorded);

// ... and follows it after as many ops and allocations as the free of any of the iterations in a row to which the one
// that was found belongs, or as nearly all frees do, but not behind its iteration. `at_last_use`:
// frees_at_last_use(recorded), in which it was found.
//
// nullopt: in most of them some free comes when the next one has begun, so what is alive there is another set each
// time.
std::optional<CallStream> frees_as_late(const CallStream& recorded, const CallStream& at_last_use,
                                        const Iteration& found);

// What `find` finds in the calls as recorded, or, where that is less than half of the recording, in another order.
FoundLoop in_any_order(const CallStream& recorded, const FindIteration& find);

}  // namespace reprise::analyzer

// Finds the iteration of a recorded program: the period of its calls that explains most of its recorded device time,
// and whose end has the same live set as its start. Callers: the planner, reports.
#pragma once
#include <cstdint>
#include <string>

#include "analyzer/iteration/call_stream.h"
#include "preload/trace/status.h"

namespace reprise::analyzer {

struct Iteration {
  uint32_t first_call = 0;  // in the CallStream: the last complete occurrence that equals the one before it
  uint32_t call_count = 0;
  uint32_t occurrences = 0;  // complete ones in the trace
  double coverage = 0;       // share of the recorded device time that its repetitions take
  bool timed = false;        // false: no times were recorded, and calls are counted
  bool marked = false;       // the program's marks said where it starts
  bool parts_move = false;   // calls work on another part of their tensors each time, as on slices of a data set
  bool sizes_vary = false;   // tensors are of another size each time; these are the largest (varying_sizes.h)
  bool early = false;        // once more of it recorded, and it could start where clearly less is alive
};

// "97 % of the recorded device time", or of the calls.
std::string covered(const Iteration& iteration);

// Marks of this name say where iterations start and win over the search.
inline constexpr char kMark[] = "iteration";

// Needs two equal occurrences in a row somewhere, and one more where tensors take turns from one to the next; a
// prologue, other phases in between and an incomplete tail may surround them. It is the
// shortest that covers about as much as any. Among the possible starts: the one with the fewest bytes alive, then one
// where the host has just waited for the device, then the first. Not ok (not_found): a line that says why there is
// none. O(n log n) in the number of calls. The search finds none of fewer than `least_calls` calls; without that number
// what repeats is none either where it is one call alone, in which nothing can move, or next to nothing of the
// recording (plan::kLeastShare).
Result<Iteration> find_iteration(const CallStream& stream, uint64_t least_calls = 0);

}  // namespace reprise::analyzer

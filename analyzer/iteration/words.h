// A trace as a sequence of 64-bit words in which iterations repeat literally, and the search for periods in it.
// Callers: the iteration finder.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/iteration/call_stream.h"

namespace reprise::analyzer {

// One word per call. An iteration of period p < `scale` keeps what it allocates for less than `scale` calls, and what
// outlives two iterations lives for longer: so the short-lived are named by their distance to the call that allocated
// them (equal in every iteration), the long-lived by their allocation's id. 24 equal layers use 24 different weights
// and thus give different words, 24 iterations use the same ones and give equal words.
std::vector<uint64_t> words_at_scale(const CallStream& stream, uint32_t scale);

// One word per call that says nothing about tensors but their sizes: what repeats here and not above uses other memory
// each time.
std::vector<uint64_t> words_without_tensors(const CallStream& stream);

// Periods p in [low, 2 * low) at which windows of `low` words repeat, most frequent first, at most `limit`.
std::vector<uint32_t> periods_between(const std::vector<uint64_t>& words, uint32_t low, size_t limit);

// A maximal range of calls [begin, end) in which words[i] == words[i + period] for all i < end - period, and which
// holds at least two periods.
struct Run {
  uint32_t begin = 0;
  uint32_t end = 0;
};
std::vector<Run> runs_of(const std::vector<uint64_t>& words, uint32_t period);

}  // namespace reprise::analyzer

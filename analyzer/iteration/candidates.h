// Periods at which the calls of a trace repeat, and what each may be as an iteration: hashes propose, the finder
// compares call by call. Caller: the iteration finder.
#pragma once
#include <cstdint>
#include <vector>

#include "analyzer/iteration/call_stream.h"
#include "analyzer/iteration/coverage.h"
#include "analyzer/iteration/words.h"

namespace reprise::analyzer {

// A distance at which calls repeat, whatever tensors they use.
struct LoopPeriod {
  uint32_t length = 0;
  uint64_t most = 0;  // no iteration of this length covers more
};

// Those worth a look, the ones that may cover most first.
std::vector<LoopPeriod> periods_of(const CallStream& stream, const CallWords& words, const Coverage& coverage);

// Where an iteration may start.
struct LoopStart {
  CallIndex call{0};
  bool early = false;  // less is alive at a place of the loop that has not come often enough yet to start there
};

// An iteration of `turns` periods. Where tensors are handed over, the new one may be allocated before the old one is
// freed: then two or more of them take turns, and only so many periods together end as they began.
//
//     turns = 2     | loss A ...  | loss B, free A | loss A', free B | loss B', free A' |
//                                 |<------ iteration: ends with B as it began --------->|   B and B' may share a place
struct LoopCandidate {
  uint32_t period = 0;
  uint32_t turns = 1;
  bool handovers = false;         // false: the live set at its end is that at its start, tensor by tensor
  uint64_t covered = 0;           // by its runs
  std::vector<Run> runs;          // in which it repeats
  std::vector<LoopStart> starts;  // by run: the iteration's first call, where it would be taken from this run

  uint32_t length() const { return turns * period; }
};

inline constexpr uint32_t kMostTurns = 4;

// What `words`, made at the scale of the candidates' length, say: one for each loop that repeats so.
std::vector<LoopCandidate> make_candidates(const CallStream& stream, const std::vector<uint64_t>& words,
                                           const Coverage& coverage, uint32_t period, uint32_t turns, bool handovers);

}  // namespace reprise::analyzer

// How far iterations of one run differ among themselves: a difference between two runs that is no larger says nothing
// of their plans. Called by compare.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {

// The middle half of some figures.
struct Spread {
  uint64_t count = 0;  // 0: there are none
  uint64_t low = 0;
  uint64_t high = 0;
};
Spread spread_of(std::vector<uint64_t> values);
// Of an iteration's time, or of what it waited.
Spread spread_of(const RunLog& log, bool planned, uint64_t RunIteration::*what);

// The middle halves meet: the runs differ no more than their iterations do.
bool meet(const Spread& a, const Spread& b);
// By how much they may differ, then: the mean width.
uint64_t play(const Spread& a, const Spread& b);

// ", no difference beyond the spread of iterations (the middle half of A's took 80 to 90 ms, of B's 85 to 95 ms)"
std::string spread_words(const Spread& a, const Spread& b);

}  // namespace reprise::report

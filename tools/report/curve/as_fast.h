// Which budget is recommended: the smallest one that costs nothing worth mentioning. Callers: the budget curve of a
// report against computing alone, `reprise simulate` against the fastest of the budgets asked for.
#pragma once
#include <cstdint>

namespace reprise::report {

// Both say it. It is one margin, for of two, one command would call a budget slow that the other one recommends. Times
// that are predicted or repeated differ by 1 to 2 %, so that a smaller margin would buy memory for noise; a larger one
// would be felt, as 5 % of a day's training is more than an hour.
inline constexpr uint64_t kAsFastPercent = 2;

inline bool is_as_fast(uint64_t time_ns, uint64_t least_ns) {
  return time_ns <= least_ns + least_ns / 100 * kAsFastPercent + least_ns % 100 * kAsFastPercent / 100;
}

}  // namespace reprise::report

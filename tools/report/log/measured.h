// The iteration whose device times were measured: which of several stands for the run, and how far it is from most.
// Called by the report.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "tools/report/log/run_log.h"

namespace reprise::report {

// Kernels, and what waits for them, differ by as much from one iteration to the next.
inline constexpr double kAlike = 0.03;

// By the first plan, with that number; nullptr: there is none.
const RunIteration* planned_iteration(const RunLog& log, uint64_t index);

// What one by the first plan took; 0: none was.
uint64_t median_of_first_plan(const RunLog& log);

// Of those that are whole and were measured as fully as any, the one that took closest to the median of its plan's.
// None: there is no such one.
std::optional<uint64_t> measured_iteration(const RunLog& log);
// Where there is none, which was measured all the same, and what it lacks: "iteration 6, which left the plan at call
// 336". "": none was, or there is a measured one.
std::string measured_in_part(const RunLog& log);

// Did it take another time than most?
struct BesideMedian {
  uint64_t iteration = 0;
  uint64_t wall_ns = 0;
  uint64_t median_ns = 0;
};
std::optional<BesideMedian> unlike_most(const RunLog& log);
// ", which took 40 % more than the median"; empty: it is like most, or that is not known.
std::string unlike_words(const RunLog& log);

}  // namespace reprise::report

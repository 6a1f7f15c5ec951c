// What of an iteration is computing, in both runs: kernels that take longer are the device's clock or other load, and
// no plan's doing. Of the iterations that were measured, as the others do not say. Called by compare.cpp.
#pragma once
#include <string>

#include "tools/report/report.h"

namespace reprise::report {

// Of planned iterations that were measured, medians.
struct Computing {
  uint64_t measured = 0;  // how many; 0: what follows is not known
  uint64_t computing_ns = 0;
  uint64_t rest_ns = 0;            // of the same iterations: waiting, moving, launching
  uint64_t repeated_launches = 0;  // that computed again what the plan had given up
  std::string unlike;  // "iteration 7, which took 15 % less than the median": not of most; empty: it is, or not known
};
Computing computing_of(const RunLog& log);

// Two rows for the table: computing, and all else; where one is not of most iterations, neither is better.
void add_computing_rows(const Computing& before, const Computing& after, Json& rows);

// Whose `verdict_of_times` it is: what of the difference is computing, as far as measured iterations are like most. Its
// tone is a note where all of it is.
void say_computing(const Computing& before, const Computing& after, bool times_differ, Json& verdict);

}  // namespace reprise::report

// The iterations that a run counts, also those that nothing was timed of: what tables list agrees with "8 of 12
// planned". Only where a program has several loops with plans, the log has no number for some between these. Called by
// the exports.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {

struct ListedIteration {
  uint64_t index = 0;
  const char* mode = "";                // the run log's words; "unfinished": the program left it
  const RunIteration* timed = nullptr;  // into the log; nullptr: of it nothing else is known
};

// By number. Without a time: those that were over when the calls were seen to repeat, and those that the program left
// when they were more than half over.
std::vector<ListedIteration> every_iteration(const RunLog& log);

}  // namespace reprise::report

// The iterations that a run counts, also those that nothing was timed of: what tables list agrees with "8 of 12
// planned". Called by the exports.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/report/log/run_log.h"

namespace reprise::report {

struct ListedIteration {
  std::optional<uint64_t> index = {};   // none: counted, but without a line in the log
  const char* mode = "";                // the run log's words; "unfinished": the program left it
  const RunIteration* timed = nullptr;  // into the log; nullptr: nothing else is known
};

// By number, those without one last. Without a time: those that were over when the calls were seen to repeat, that the
// log saw as part of something else which repeats, and that the program left when they were more than half over.
std::vector<ListedIteration> every_iteration(const RunLog& log);

}  // namespace reprise::report

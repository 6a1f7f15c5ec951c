// Memory during a whole run: what was on the device, what the program asked for as far as that is known, and when it is
// not. Called by the report and the exports.
#pragma once
#include <vector>

#include "preload/trace/reader.h"
#include "tools/report/log/run_log.h"
#include "tools/report/view/timeline.h"

namespace reprise::report {

// By CLOCK_MONOTONIC; nothing where the log has no sample.
struct RunMemoryCurves {
  Curve device;
  Curve requested;
  // While a plan is followed nothing is recorded: what the program asks for then is not known.
  std::vector<Interval> unknown;
};

// With the trace that goes with the log, or none (nullptr).
RunMemoryCurves run_memory(const RunLog& log, const trace::Trace* trace);

}  // namespace reprise::report

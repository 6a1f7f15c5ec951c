// Why memory was managed on demand: a row says all that a page makes of a cause of the run log. Callers: the verdict,
// the sentences and the advice.
#pragma once
#include <string>

#include "tools/report/log/run_log.h"

namespace reprise::report {

struct ReasonRow {
  const char* cause;     // a word of run_log::on_demand; "": any other
  const char* in_short;  // "It ran in 9.0 MiB, but without a plan: ..."
  const char* tone;
  const char* sentence;  // {plan}, {times}, {reason}, {then}: how the run went without the plan
  // What to change; without a title, nothing, or what only numbers can say.
  const char* title = "";
  const char* detail = "";
  const char* command = "";
  bool needs_end = false;  // no advice if the program was killed: running longer is not its to choose
};

// In `mode`, "run" or "replay", a cause may mean something else than in another.
const ReasonRow& row_of(const RunReason& reason, const std::string& mode);

// There was a plan: it came with the last iterations, or no iteration was like it.
const ReasonRow& too_late_row();
const ReasonRow& unlike_plan_row();

}  // namespace reprise::report

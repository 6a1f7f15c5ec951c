// Do a trace, a plan and a run log belong together? A page about two programs, or about two recordings, would be
// nonsense. Called where files are read; files of versions that do not say whose they are pass.
#pragma once
#include <string>

#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "preload/trace/status.h"
#include "tools/report/log/run_log.h"

namespace reprise::tools {

// Any may be absent (nullptr).
Status check_same_recording(const trace::Trace* trace, const plan::Plan* plan, const report::RunLog* log);

// Is it the plan that the run began with, and no other one of the same iteration? A part of the above: what a plan
// predicted would stand beside what a run did under another one.
Status check_plan_of_run(const report::RunLog& log, const plan::Plan& plan);

// Once the trace's iteration is known: is a run that recorded nothing itself, under a plan of this iteration? A plan
// that is given, too, may be of another part of the trace, but not of another recording of the same calls.
Status check_same_iteration(const trace::Trace& trace, uint64_t iteration_hash, const plan::Plan* plan,
                            const report::RunLog* log);

// Where the command lines of two runs differ: " (--batch 11 and --batch 8)", with a blank in front; empty where they do
// not, or where that is not known. `one` and `two`: arguments, separated by blanks.
std::string differing_arguments(const std::string& one, const std::string& two);

// Not ok if two plans cannot be compared tensor for tensor: they must be of one iteration, though its recordings may
// differ.
Status check_same_plans(const plan::Plan& one, const plan::Plan& two);

}  // namespace reprise::tools

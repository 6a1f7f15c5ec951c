// Do a trace, a plan and a run log belong together? A page about two programs, or about two recordings, would be
// nonsense. Called where files are read; files of versions that do not say whose they are pass.
#pragma once
#include "analyzer/plan/plan.h"
#include "preload/trace/reader.h"
#include "preload/trace/status.h"
#include "tools/report/view/run_log.h"

namespace reprise::tools {

// Any may be absent (nullptr).
Status check_same_recording(const trace::Trace* trace, const plan::Plan* plan, const report::RunLog* log);

}  // namespace reprise::tools

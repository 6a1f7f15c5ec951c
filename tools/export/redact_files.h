// Files without names of the user's, all of one Redactor. Callers: `export`, `report` and `bug`.
#pragma once
#include <string>
#include <vector>

#include "preload/trace/status.h"
#include "tools/report/inputs.h"

namespace reprise::exports {

// The lines of the run log among the files; "": there is none.
Status read_run_log_text(const std::vector<std::string>& paths, std::string& text);

// `run_log`: the lines that `files.log` was read from.
void redact(tools::LoadedFiles& files, std::string& run_log);

}  // namespace reprise::exports

// Is a file a run log? JSON lines are written by many programs: one of ours names a kind of line that the table of keys
// has, and a key of it. Caller: what tells files apart (tools/report/inputs).
#pragma once
#include <string>

namespace reprise::report {

// Has the file such a line, among whatever was cut off or damaged? Older kinds' names and keys count as well.
bool is_run_log(const std::string& path);

}  // namespace reprise::report

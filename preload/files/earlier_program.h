// A shell, a script or a framework that was started with REPRISE_RUN_LOG hands it on to all that it starts: programs
// that run one after the other name the same file, and what an earlier one has left there is kept (decision 0039).
// Callers: the run log, and what opens the trace, where there is no launcher.
#pragma once
#include <sys/stat.h>

namespace reprise {

// Was the file written since the command began that this process is of? That is the oldest one of its parents, theirs
// and itself that are in its process group, and, but for itself, were started with `variable` as `value`. A shell that
// people type into gives each line a group of its own. Where /proc does not tell: no.
bool is_of_this_command(const struct stat& file, const char* variable, const char* value) noexcept;

}  // namespace reprise

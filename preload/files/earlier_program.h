// A shell, a script or a framework that was started with REPRISE_RUN_LOG hands it on to all that it starts: programs
// that run one after the other name the same file, and what an earlier one has left there is kept (decision 0039).
// Callers: the run log, and what opens the trace, where there is no launcher; lines at a program's end, which name it
// where others of the command may print the same.
#pragma once
#include <sys/stat.h>

namespace reprise {

// Was the file written since the command began that this process is of? That is the oldest one of its parents, theirs
// and itself that are in its process group, and, but for itself, were started with `variable` as `value`. A shell that
// people type into gives each line a group of its own. Where /proc does not tell: no.
bool is_of_this_command(const struct stat& file, const char* variable, const char* value) noexcept;

// Was what started this process started with `variable` as `value` itself, as a shell or a script is whose programs all
// have it? Then this one need not be the only one. Where /proc does not tell: no.
bool is_started_by_another(const char* variable, const char* value) noexcept;

}  // namespace reprise

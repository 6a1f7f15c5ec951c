// The files that the environment names for writing are none that is read, and no two are one: nothing of the user's is
// written over. Caller: the configuration, before anything is opened.
#pragma once
#include "preload/base/config.h"

namespace reprise {

// Takes away what would be lost, and says so: REPRISE_TRACE and REPRISE_RUN_LOG where they lead to a file that another
// variable names for reading, to the program's own file or to one of its arguments; REPRISE_RUN_LOG where it leads to
// the same as REPRISE_TRACE. What is no regular file (a pipe, /dev/null) holds nothing that could be lost.
void keep_files_apart(Config* settings) noexcept;

}  // namespace reprise

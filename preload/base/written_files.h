// The files that the environment names for writing are none that is read, and no two are one: nothing of the user's is
// written over. Callers: the configuration, before anything is opened; of is_same_file(), the outputs of commands.
#pragma once
#include <string>

#include "preload/base/config.h"

namespace reprise {

// Do both names lead to one file, by a link or another spelling? It need not exist yet. What is no regular file holds
// nothing that could be lost, and is none.
bool is_same_file(const std::string& one, const std::string& other);

// Takes away what would be lost, and says so: REPRISE_TRACE and REPRISE_RUN_LOG where they lead to a file that another
// variable names for reading, to the program's own file or to one of its arguments; REPRISE_RUN_LOG where it leads to
// the same as REPRISE_TRACE. What is no regular file (a pipe, /dev/null) holds nothing that could be lost.
void keep_files_apart(Config* settings) noexcept;

}  // namespace reprise

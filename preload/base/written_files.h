// The files that the environment names for writing are none that is read, and no two are one: nothing of the user's is
// written over. Callers: the configuration, before anything is opened; of the single functions, the outputs of
// commands.
#pragma once
#include <string>
#include <vector>

#include "preload/base/config.h"

namespace reprise {

// Do both names lead to one file, by a link or another spelling? It need not exist yet. What is no regular file holds
// nothing that could be lost, and is none.
bool is_same_file(const std::string& one, const std::string& other);

// The names of files that one of a program's arguments may hold: as in FILE, --text=FILE, if=FILE.
std::vector<std::string> names_in_argument(const std::string& argument);

// What is there is neither a file nor a folder: what is written to it cannot be read back.
bool is_stream(const std::string& path);

// The standard output or error that the name leads to: a pipe, a terminal, or the file that the shell has put it into.
// -1: neither, so that what is written there is not mixed with what is printed.
int standard_stream(const std::string& path);

// Takes away what would be lost, and says so: REPRISE_TRACE and REPRISE_RUN_LOG where they lead to a file that another
// variable names for reading, to the program's own file, to one of its arguments, or to what it reads or prints;
// REPRISE_TRACE where it leads to a pipe or device, as a trace is read while it is written; REPRISE_RUN_LOG where it
// leads to the same as REPRISE_TRACE; both where they lead to a file of a run that has not started this process. A run
// log may go into a pipe: it is lines, and nothing in it is lost.
void keep_files_apart(Config* settings) noexcept;

}  // namespace reprise

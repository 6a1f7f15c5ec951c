// Where this installation's files are; whole files read and written. Callers: the commands, before they start anything,
// so that a bad path is found before an hour of training and not after it; readers of files.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "preload/trace/status.h"

namespace reprise::tools {

// Absolute paths relative to this executable: bin/reprise, lib/reprise/libreprise.so, and the simulated device in
// lib/reprise/sim, or in lib/sim where it was built.
struct Installation {
  std::string planner;     // this executable
  std::string shim;        // the preloaded library
  std::string nvml;        // a library of NVML's name, preloaded behind it
  std::string sim_folder;  // holds the simulated driver and its runtime library
  std::string sim_driver;
};
Installation installation();

// "PATH: what the system says; advice", without the advice where it would not help.
Status system_error(const std::string& path, int error, std::string_view advice);
// Ok when `path` is a file that can be read.
Status check_readable(const std::string& path);
// Writes the whole file through a temporary name beside it; "-" is stdout.
Status write_file(const std::string& path, const std::string& content);
// What `write` makes of the name that it is given is at `path` afterwards, as a whole; where it fails, what was there
// before is. A pipe or device is given as it is.
Status write_whole(const std::string& path, const std::function<Status(const std::string& target)>& write);
// What was printed has to be there when the process ends: `exit_code`, or 1 and a line.
int finish_stdout(int exit_code);
// First of all: where standard input, output or error are closed, no file that is opened gets their number, which would
// then hold what is printed. Programs that are started find them closed, as they were.
void keep_standard_numbers();
Result<std::string> read_file(const std::string& path);
// "DIR/NAME-2.html" of "DIR/NAME.html" and 2.
std::string numbered_name(const std::string& path, int number);
inline constexpr int kMostNames = 10'000;  // that are tried
// A name of our own choosing is never that of a file which is there: `path`, or the first of NAME-2.html, NAME-3.html
// ... that is free. An empty file holds the place until it is written.
Result<std::string> reserve_name(const std::string& path);
// `path` is as the user gave it where `named`; else it becomes the first free name, as reserve_name() has it.
Status write_output(std::string& path, bool named, const std::string& content);
// Bytes of a regular file, 0 when there is none.
uint64_t file_size(const std::string& path);
std::string absolute_path(const std::string& path);

// A write beyond what the system lets a file hold (ulimit -f) fails from now on, as on a full disk: its signal would
// end this process without a word, and leave half a file behind.
void fail_beyond_file_limit();
// In a child, before exec: restores the signal's disposition from our own start. Async-signal-safe.
void restore_file_limit();

}  // namespace reprise::tools

#include "preload/base/written_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "preload/base/causes.h"
#include "preload/files/claims.h"

namespace reprise {
namespace {

// A file that exists, or one that will be made: a name in a folder.
struct Place {
  bool exists = false;
  bool holds_bytes = false;  // a regular file, or a place for one; no pipe, device or folder
  dev_t device = 0;
  ino_t inode = 0;   // of the file, or of its folder
  std::string name;  // in the folder; empty where the file exists
};

Place place_of(const std::string& path) {
  Place place;
  struct stat info {};
  place.exists = stat(path.c_str(), &info) == 0;
  place.holds_bytes = place.exists && S_ISREG(info.st_mode);
  if (!place.exists) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    place.holds_bytes = stat(folder.c_str(), &info) == 0;  // else it cannot be made either
    place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  }
  place.device = info.st_dev;
  place.inode = info.st_ino;
  return place;
}

bool same(const Place& one, const Place& other) {
  return one.holds_bytes && other.holds_bytes && one.exists == other.exists && one.device == other.device &&
         one.inode == other.inode && one.name == other.name;
}

// The words of the command line behind the program's name; empty where the system does not tell.
std::string read_words() {
  std::string words;
  const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return words;
  char piece[4096];
  for (ssize_t got = 0; (got = read(file, piece, sizeof piece)) > 0;) words.append(piece, static_cast<size_t>(got));
  close(file);
  return words.substr(std::min(words.size(), std::strlen(words.c_str()) + 1));
}

bool is_argument(const Place& place) {
  const std::string words = read_words();
  for (size_t at = 0; at < words.size(); at += std::strlen(words.c_str() + at) + 1) {
    for (const std::string& name : names_in_argument(words.c_str() + at)) {
      if (same(place, place_of(name))) return true;
    }
  }
  return false;
}

// Mapped as it is, so that writing to it would end this process.
const char* own_library() {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(&own_library), &info) != 0 ? info.dli_fname : nullptr;
}

// What the file at `path` is read as; empty: as nothing.
std::string reader_of(const char* path, const Config& settings) {
  const Place place = place_of(path);
  if (!place.exists || !place.holds_bytes) return {};
  const struct {
    const char* path;
    const char* what;
  } readers[] = {{settings.plan, phrase<Cause::is_plan>()},       {settings.driver, phrase<Cause::is_driver>()},
                 {settings.planner, phrase<Cause::is_planner>()}, {own_library(), phrase<Cause::is_preloaded>()},
                 {"/proc/self/exe", phrase<Cause::is_program>()}, {"/proc/self/fd/0", phrase<Cause::is_input>()}};
  for (const auto& reader : readers) {
    if (reader.path != nullptr && same(place, place_of(reader.path))) return reader.what;
  }
  return is_argument(place) ? phrase<Cause::is_argument>() : "";
}

// What else stands against writing to `path`; empty: nothing.
std::string why_no_place(const std::string& path, bool needs_file) {
  if (standard_stream(path) >= 0) return phrase<Cause::is_printed_to>();
  return needs_file && is_stream(path) ? phrase<Cause::is_no_file>() : "";
}

// What stands against writing into a file of a run that has not started this program; empty: it is none.
std::string whose_run(const char* path, const Config& settings) {
  const std::optional<pid_t> run = claimant_of(path);
  if (!run) return {};
  const bool own = *run == 0 || static_cast<uint32_t>(*run) == settings.launcher;  // as far as can be told
  if (settings.launched() && own) return {};
  return *run == 0 ? phrase<Cause::is_of_a_run>() : words<Cause::is_of_run>(*run);
}

void keep_from(const char* variable, const char* what_is_lost, const char** path, bool needs_file,
               const Config& settings) {
  if (*path == nullptr) return;
  std::string what = reader_of(*path, settings);
  if (what.empty()) what = why_no_place(*path, needs_file);
  if (what.empty()) what = whose_run(*path, settings);
  if (what.empty()) return;
  say<Cause::output_is_taken>(variable, *path, what, what_is_lost);
  *path = nullptr;
}

}  // namespace

bool is_stream(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

int standard_stream(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return -1;
  // What is written to devices that are no terminals, as /dev/null, is nobody's.
  const auto is_a_place = [](int file, const struct stat& of) { return !S_ISCHR(of.st_mode) || isatty(file) == 1; };
  for (const int file : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat printed {};
    if (fstat(file, &printed) == 0 && printed.st_dev == info.st_dev && printed.st_ino == info.st_ino &&
        is_a_place(file, printed)) {
      return file;
    }
  }
  return -1;
}

bool is_same_file(const std::string& one, const std::string& other) { return same(place_of(one), place_of(other)); }

std::vector<std::string> names_in_argument(const std::string& argument) {
  std::vector<std::string> names = {argument};
  if (const size_t equals = argument.find('='); equals != std::string::npos)
    names.push_back(argument.substr(equals + 1));
  return names;
}

void keep_files_apart(Config* settings) noexcept {
  try {
    keep_from("REPRISE_TRACE", phrase<Cause::nothing_recorded>(), &settings->trace, true, *settings);
    keep_from("REPRISE_RUN_LOG", phrase<Cause::no_run_log>(), &settings->run_log, false, *settings);
    if (settings->trace == nullptr || settings->run_log == nullptr) return;
    if (!same(place_of(settings->trace), place_of(settings->run_log))) return;
    say<Cause::run_log_is_trace>(settings->run_log);
    settings->run_log = nullptr;
  } catch (...) {  // out of memory: then hardly anything is written either
  }
}

}  // namespace reprise

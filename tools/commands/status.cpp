// `reprise status PID`: how a run goes that somebody else has started.
#include <fmt/core.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "preload/files/file_names.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/launch/watch/course.h"

namespace reprise::tools {
namespace {

// As the process was started with it; "": it has none, or is another user's.
std::string variable_of(const std::string& process, std::string_view name) {
  std::ifstream file("/proc/" + process + "/environ", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  for (size_t begin = 0; begin < all.size();) {
    const std::string_view entry(all.c_str() + begin);
    if (entry.starts_with(name) && entry.substr(name.size()).starts_with('=')) {
      return std::string(entry.substr(name.size() + 1));
    }
    begin += entry.size() + 1;
  }
  return {};
}

// "": it keeps none.
std::string own_log(const std::string& process) {
  std::string value;
  const auto lookup = [&](const char* name) -> const char* {
    value = variable_of(process, name);
    return value.empty() ? nullptr : value.c_str();
  };
  return expanded_name(variable_of(process, "REPRISE_RUN_LOG"), lookup, std::stoi(process));
}

// The log of the process, or of a program of the run that it is.
std::string run_log_of(const std::string& process) {
  if (std::string own = own_log(process); !own.empty()) return own;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string other = entry.path().filename();
    if (other.find_first_not_of("0123456789") != std::string::npos) continue;
    if (variable_of(other, "REPRISE_LAUNCHER") != process) continue;
    if (std::string log = own_log(other); !log.empty()) return log;
  }
  return {};
}

int run_status(pid_t number) {
  const std::string process = std::to_string(number);
  const std::string log = run_log_of(process);
  if (log.empty()) {
    return fail({StatusCode::not_found,
                 fmt::format("process {}: no run of Reprise that keeps a run log, or another user's", process)});
  }
  if (const Status readable = check_readable(log); !readable.ok()) return fail(readable);
  Course course;
  while (course.read(log)) {
  }
  const std::string line = course.line();
  const Status written = write_file("-", (line.empty() ? "nothing has happened on the device yet" : line) + "\n");
  return written.ok() ? 0 : fail(written);
}

}  // namespace

Action declare_status(CLI::App& app, const ProgramArguments&) {
  auto process = std::make_shared<pid_t>(0);
  app.add_option("process", *process, "The process of `reprise run` or of its program")
      ->required()
      ->check(CLI::PositiveNumber);
  return [process] { return run_status(*process); };
}

}  // namespace reprise::tools

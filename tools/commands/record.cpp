// `reprise record`: runs the program and keeps the trace of its GPU calls.
#include <fmt/core.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>

#include "preload/trace/ending.h"
#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/sizes.h"
#include "tools/doctor/checks.h"
#include "tools/launch/session.h"

namespace reprise::tools {
namespace {

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// A pipe or /dev/null: what went in cannot be looked at.
bool is_special(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

// What is in the file that the user named; not ok when it is not what was asked for.
Status judge(const std::string& name, const std::string& path, const Outcome& outcome, const std::string& device) {
  const auto cut = [&](const std::string& why) {
    return Status(StatusCode::truncated,
                  fmt::format("{}: the recording is cut short ({}): {}; report, dump and export use what is there",
                              name, format_bytes(file_size(path)), why));
  };
  if (is_special(path)) return {};
  if (!exists(path)) {
    say(fmt::format("{}: nothing was recorded: {}", name, why_no_calls(device == "sim")));
    return {};
  }
  if (file_size(path) == 0) {
    return {StatusCode::io_error, fmt::format("{}: nothing could be written; make room, or name another file", name)};
  }
  const Result<trace::Ending> ending = trace::read_ending(path);
  if (!ending.ok()) return ending.status();
  if (ending.value().stopped_by != 0) {
    return cut(std::string(std::strerror(static_cast<int>(ending.value().stopped_by))) +
               "; make room and record again");
  }
  if (!ending.value().ended) {
    say(cut(outcome.signal != 0
                ? fmt::format("the program died of signal {} ({})", outcome.signal, strsignal(outcome.signal))
                : std::string("the program ended without its exit handlers, and what it called in its "
                              "last moments may be missing"))
            .message());
    return {};
  }
  const std::string lost =
      ending.value().dropped == 0 ? "" : fmt::format(", but {} records were lost", ending.value().dropped);
  say(fmt::format("recorded {} ({}){}; next: reprise plan {} --budget 50% -o a.plan", name,
                  format_bytes(file_size(path)), lost, name));
  return {};
}

// With a budget the preloaded library plans, too: beside a private name of the trace.
int run_record(const SessionOptions& options, const ProgramArguments& program) {
  Result<Settings> checked = check_session(options, program);
  if (!checked.ok()) return fail(checked.status());
  Settings settings = checked.value();
  const std::string trace = settings.trace;
  remove_old(trace);
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder.ok()) return fail(folder.status());
  if (Status status = record_through(folder.value(), settings); !status.ok()) return fail(status);
  Result<Outcome> outcome = run_program(settings, program);
  if (!outcome.ok()) return fail(outcome.status());
  folder.value().remove();
  const Status recorded = judge(options.trace, trace, outcome.value(), settings.device);
  if (!recorded.ok()) say(recorded.message());
  const int exit_code = end_like(outcome.value());
  return exit_code == 0 && !recorded.ok() ? kExitFailure : exit_code;
}

}  // namespace

Action declare_record(CLI::App& app, const ProgramArguments& program) {
  auto options = std::make_shared<SessionOptions>();
  options->trace_option = "-o";
  app.add_option("-o,--output", options->trace, "The trace to write")->required();
  app.add_option("--budget", options->budget, "Stay within this budget while recording, as in 12GiB or 50%");
  add_device_options(app, *options);
  app.footer(
      "As in: reprise record [options] -o TRACE -- program arguments...\nExit code: the program's; 1 when it ended "
      "well "
      "and the recording could not be written.");
  return [options, &program] { return run_record(*options, program); };
}

}  // namespace reprise::tools

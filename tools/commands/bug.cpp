// `reprise bug`: one archive to send with a report of a bug: the files without names of the user's, their page, and
// what `doctor` says of the machine. Each part is made by the command that a user would type for it.
#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/cli/temporary.h"

namespace reprise::tools {
namespace {

struct BugOptions {
  std::vector<std::string> files;
  std::string output;
};

// The exit code; what it prints goes into `output`, "": to our own standard error, as messages do.
int run_child(std::vector<std::string> words, const std::string& output) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (output.empty()) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  pid_t child = 0;
  const int started = posix_spawnp(&child, words[0].c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (started != 0) return kExitFailure;
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : kExitFailure;
}

void replace_all(std::string& text, const char* name, const char* with) {
  if (name == nullptr || std::strlen(name) < 2) return;
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += std::strlen(with)) {
    text.replace(at, std::strlen(name), with);
  }
}

// The machine as `doctor` sees it, without the user's name.
Status write_machine(const std::string& path) {
  run_child({installation().planner, "doctor"}, path);  // whatever it finds is of interest
  Result<std::string> text = read_file(path);
  if (!text.ok()) return text.status();
  replace_all(text.value(), std::getenv("HOME"), "~");
  replace_all(text.value(), std::getenv("USER"), "(user)");
  return write_file(path, text.value());
}

Status write_parts(const BugOptions& options, const TemporaryFolder& folder) {
  if (Status machine = write_machine(folder.file("doctor.txt")); !machine.ok() || options.files.empty()) return machine;
  const auto with_files = [&](std::vector<std::string> words) {
    words.insert(words.begin() + 2, options.files.begin(), options.files.end());
    return run_child(words, folder.file("messages.txt"));
  };
  const std::string self = installation().planner;
  const std::string redacted = folder.file("bug");
  int failed = with_files({self, "export", "--redact", "--format", "reprise", "-o", redacted});
  if (failed == 0) failed = with_files({self, "report", "--redact", "-o", folder.file("bug.html")});
  if (failed == 0) return {};
  Result<std::string> why = read_file(folder.file("messages.txt"));
  std::string line = why.ok() ? why.value().substr(0, why.value().find('\n')) : "no file was read";
  if (line.starts_with("reprise: ")) line.erase(0, std::strlen("reprise: "));
  return {StatusCode::invalid_argument, line};
}

int run_bug(BugOptions options) {
  const bool named = !options.output.empty();
  if (!named) options.output = "reprise-bug.tar.gz";
  Outputs outputs;
  outputs.reads(options.files);
  const Status writable = (named ? outputs.writes("-o", options.output) : outputs.chooses(options.output)).check();
  if (!writable.ok()) return fail(writable);
  for (const std::string& file : options.files) {
    if (const Status readable = check_readable(file); !readable.ok()) return fail(readable);
  }
  Result<TemporaryFolder> folder = TemporaryFolder::create();
  if (!folder.ok()) return fail(folder.status());
  if (const Status made = write_parts(options, folder.value()); !made.ok()) return fail(made);
  unlink(folder.value().file("messages.txt").c_str());
  const std::string archive = folder.value().path() + ".tar.gz";
  const RemovedWhenInterrupted unfinished(archive);
  const int packed = run_child({"tar", "-C", folder.value().path(), "-czf", archive, "."}, "");
  const Result<std::string> content = read_file(archive);
  unlink(archive.c_str());
  if (packed != 0 || !content.ok())
    return fail({StatusCode::io_error, "bug: tar could not pack the files; is it installed?"});
  const Status written = write_output(options.output, named, content.value());
  if (!written.ok()) return fail(written);
  say(fmt::format(
      "wrote {}: names of programs, kernels, files and folders are replaced by numbers; look at it before you send it",
      options.output));
  return 0;
}

}  // namespace

Action declare_bug(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<BugOptions>();
  app.add_option("files", options->files, "A trace, a plan, a run log of what went wrong, in any order")
      ->expected(0, 3);
  app.add_option("-o,--output", options->output, "The archive (default: reprise-bug.tar.gz, or a free name like it)");
  return [options] { return run_bug(*options); };
}

}  // namespace reprise::tools

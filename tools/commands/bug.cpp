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
#include <set>
#include <string>
#include <vector>

#include "tools/cli/command.h"
#include "tools/cli/files.h"
#include "tools/cli/message.h"
#include "tools/cli/outputs.h"
#include "tools/cli/temporary.h"
#include "tools/report/inputs.h"

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

// ".trace"; nullptr: it is none of our files.
const char* ending_of(const std::string& file) {
  const Result<FileKind> kind = kind_of(file);
  if (!kind.ok() || kind.value() == FileKind::unknown) return nullptr;
  return kind.value() == FileKind::trace ? ".trace" : kind.value() == FileKind::plan ? ".plan" : ".run";
}

void append(std::string& list, const std::string& more) { list += (list.empty() ? "" : ", ") + more; }

// What an archive has of the files. Those that belong together have the same numbers for names, and a page; each of the
// others has numbers of its own. A file that is cut short is there as far as it can be read.
class Parts {
 public:
  explicit Parts(const TemporaryFolder& folder) : folder_(folder) {}

  // Not ok: none of the files could be read.
  Status write(const std::vector<std::string>& files) {
    if (is_one_recording(files)) {
      together_ = files;
    } else {
      for (const std::string& file : files) add(file);
    }
    if (together_.empty()) return {StatusCode::invalid_argument, why_};
    if (!is_made({"report", "--redact"}, together_, "bug.html")) append(out_of_page_, fmt::format("all ({})", why_));
    unlink(messages().c_str());
    return {};
  }

  // Empty: everything is in the page.
  std::string left_out() const {
    std::string text = out_of_page_.empty() ? "" : "left out of the page: " + out_of_page_;
    if (!not_packed_.empty()) text += (text.empty() ? "" : "; ") + ("not packed: " + not_packed_);
    return text;
  }

 private:
  std::string messages() const { return folder_.file("messages.txt"); }

  // By one of our commands. Its exit code says besides whether all of a file could be read.
  bool is_made(std::vector<std::string> words, const std::vector<std::string>& files, const std::string& name,
               const std::string& output = "") {
    words.insert(words.begin(), installation().planner);
    words.insert(words.end(), {"-o", folder_.file(output.empty() ? name : output)});
    words.insert(words.end(), files.begin(), files.end());
    run_child(words, messages());
    if (std::filesystem::exists(folder_.file(name))) return true;
    const Result<std::string> said = read_file(messages());
    why_ = said.ok() ? said.value().substr(0, said.value().find('\n')) : "no file was read";
    if (why_.starts_with("reprise: ")) why_.erase(0, std::strlen("reprise: "));
    return false;
  }

  // Then they are in the archive, by the names that say what they are.
  bool is_one_recording(const std::vector<std::string>& files) {
    std::string last;
    std::set<std::string> kinds;
    for (const std::string& file : files) {
      const char* const ending = ending_of(file);
      last = ending == nullptr ? "" : std::string("bug") + ending;
      why_ = file + (ending == nullptr ? ": neither a trace, a plan nor a run log" : ": another file of the same kind");
      if (ending == nullptr || !kinds.insert(last).second) return false;
    }
    return is_made({"export", "--redact", "--format", "reprise"}, files, last, files.size() == 1 ? last : "bug");
  }

  void add(const std::string& file) {
    std::vector<std::string> more = together_;
    more.push_back(file);
    if (is_one_recording(more)) {
      together_ = more;
      return;
    }
    std::string why = why_.substr(0, why_.find("; "));
    if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
    const char* const ending = ending_of(file);
    const std::string own = ending == nullptr ? "" : fmt::format("bug-{}{}", apart_ + 1, ending);
    if (ending != nullptr && is_made({"export", "--redact", "--format", "reprise"}, {file}, own)) {
      ++apart_;
      append(out_of_page_, fmt::format("{} ({}: {})", file, own, why));
    } else {
      append(not_packed_, fmt::format("{} ({})", file, why));
    }
  }

  const TemporaryFolder& folder_;
  std::vector<std::string> together_;
  int apart_ = 1;
  std::string why_;  // the last one was not made
  std::string out_of_page_;
  std::string not_packed_;
};

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
  Parts parts(folder.value());
  Status made = write_machine(folder.value().file("doctor.txt"));
  if (made.ok() && !options.files.empty()) made = parts.write(options.files);
  if (!made.ok()) return fail(made);
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
  if (!parts.left_out().empty()) say(parts.left_out());
  return 0;
}

}  // namespace

Action declare_bug(CLI::App& app, const ProgramArguments&) {
  auto options = std::make_shared<BugOptions>();
  app.add_option("files", options->files, "Traces, plans and run logs of what went wrong, in any order");
  app.add_option("-o,--output", options->output, "The archive (default: reprise-bug.tar.gz, or a free name like it)");
  return [options] { return run_bug(*options); };
}

}  // namespace reprise::tools

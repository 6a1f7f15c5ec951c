#include "tools/lab/probe/subjects/subprocess.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "tools/lab/probe/measure/limit.h"

extern char** environ;

namespace reprise::probe {
namespace {

constexpr size_t kKeptErrorBytes = 64 << 10;
constexpr double kLeftBehindSeconds = 1;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  static void shut(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  ~Pipe() {
    shut(read_end);
    shut(write_end);
  }
};

std::vector<std::string> merged_environment(const Command& command) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::string key = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [name, value] : command.environment) replaced = replaced || name == key;
    if (!replaced) merged.push_back(text);
  }
  for (const auto& [name, value] : command.environment) {
    if (!value.empty()) merged.push_back(fmt::format("{}={}", name, value));
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

int spawn(const Command& command, const Pipe& output, const Pipe& errors, pid_t& child) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = merged_environment(command);
  const int result = posix_spawn(&child, arguments[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                 pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

// Reads what is there; closes the end at end of file.
void drain(int& end, std::string& text) {
  std::array<char, 16384> buffer{};
  const ssize_t got = read(end, buffer.data(), buffer.size());
  if (got > 0) {
    text.append(buffer.data(), static_cast<size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    Pipe::shut(end);
  }
}

bool has_ended(pid_t child) {
  siginfo_t state = {};
  return waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) == 0 && state.si_pid == child;
}

// Until the program and all that it started have closed its output, or its time is up. Helpers that it left behind, as
// compilers' worker pools are, get a second to go, too.
void pump(pid_t child, const Command& command, Pipe& output, Pipe& errors, Outcome& outcome) {
  const Limit limit(command.seconds);
  const Limit killing(command.seconds + command.grace_seconds);
  bool asked = false;
  double asked_at = 0;
  double ended_at = -1;
  while (output.read_end >= 0 || errors.read_end >= 0) {
    std::array<pollfd, 2> ends = {{{output.read_end, POLLIN, 0}, {errors.read_end, POLLIN, 0}}};
    poll(ends.data(), ends.size(), 100);
    if (ends[0].revents) drain(output.read_end, outcome.output);
    if (ends[1].revents) drain(errors.read_end, outcome.error_output);
    if (outcome.error_output.size() > 2 * kKeptErrorBytes) {
      outcome.error_output.erase(0, outcome.error_output.size() - kKeptErrorBytes);
    }
    if (ended_at < 0 && has_ended(child)) ended_at = limit.seconds_used();
    if (ended_at >= 0 && limit.seconds_used() > ended_at + kLeftBehindSeconds) {
      kill(-child, SIGKILL);
      break;
    }
    if (!asked && limit.over()) {
      outcome.timed_out = !interrupted();
      asked = true;
      asked_at = killing.seconds_used();
      kill(-child, SIGTERM);
    } else if (asked && killing.seconds_used() > asked_at + command.grace_seconds) {
      kill(-child, SIGKILL);
      break;  // a process that left the group may hold the pipes open for ever
    }
  }
}

}  // namespace

Result<Outcome> run_command(const Command& command) {
  Pipe output;
  Pipe errors;
  if (command.arguments.empty() || !output.open() || !errors.open()) {
    return Status(StatusCode::io_error, fmt::format("cannot start a program: {}", std::strerror(errno)));
  }
  pid_t child = 0;
  if (const int error = spawn(command, output, errors, child); error != 0) {
    return Status(StatusCode::io_error, fmt::format("cannot start {}: {}", command.arguments[0], std::strerror(error)));
  }
  Pipe::shut(output.write_end);
  Pipe::shut(errors.write_end);
  Outcome outcome;
  pump(child, command, output, errors, outcome);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) last = line;
  }
  return last;
}

std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string beside_program(const std::string& relative) {
  const std::filesystem::path folder = std::filesystem::path(own_path()).parent_path();
  // Installed, all that the probe has lies beside it.
  const std::filesystem::path beside = folder / std::filesystem::path(relative).filename();
  std::error_code error;
  if (std::filesystem::exists(beside, error)) return beside.string();
  return (folder / relative).lexically_normal().string();
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder;
    candidate.append("/").append(name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

}  // namespace reprise::probe

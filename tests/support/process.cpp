#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace reprise::tools::test {
namespace {

[[noreturn]] void become(const Start& start, int in, int out, int err) {
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  for (const auto& [name, value] : start.environment) setenv(name.c_str(), value.c_str(), 1);
  constexpr unsigned kNobody = 65534;
  if (start.unprivileged && geteuid() == 0 && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(126);
  std::vector<char*> arguments;
  for (const std::string& one : start.arguments) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// Reads both until they end; calls `first` once something came on stdout.
void collect(int out, int err, Finished& result, const std::function<void()>& first) {
  struct pollfd files[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  bool called = false;
  for (int open_files = 2; open_files > 0;) {
    poll(files, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (files[i].revents == 0) continue;
      char block[4096];
      const ssize_t got = read(files[i].fd, block, sizeof block);
      if (got <= 0) {
        files[i].fd = -1;
        --open_files;
        continue;
      }
      texts[i]->append(block, static_cast<size_t>(got));
      if (i == 0 && !called && first) first();
      called = called || i == 0;
    }
  }
}

}  // namespace

Finished run(const Start& start) {
  int in[2];
  int out[2];
  int err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) become(start, in[0], out[1], err[1]);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  const bool fed = write(in[1], start.input.data(), start.input.size()) == static_cast<ssize_t>(start.input.size());
  close(in[1]);
  Finished result;
  if (!fed) return result;
  std::function<void()> first;
  if (start.meanwhile) first = [&] { start.meanwhile(child); };
  collect(out[0], err[0], result, first);
  close(out[0]);
  close(err[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

}  // namespace reprise::tools::test

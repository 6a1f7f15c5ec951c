#include "tools/launch/launcher.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "preload/files/system_words.h"
#include "tools/cli/files.h"

namespace reprise::tools {
namespace {

// What is passed on: every signal that a person or a batch system sends to a program. Signals of faults are not: a
// fault here is the launcher's own.
constexpr int kPassedOn[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM,  SIGUSR1, SIGUSR2, SIGALRM, SIGCONT,
                             SIGTSTP, SIGURG, SIGXCPU, SIGWINCH, SIGIO,   SIGPWR,  SIGPIPE, SIGVTALRM};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// The child's side of fork: only async-signal-safe calls but for setenv, which is fine in a process of one thread.
[[noreturn]] void become(const Launch& what, const sigset_t& mask, bool ignore_children, pid_t parent, int error_pipe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed launcher leaves no program behind that still holds the GPU
  if (getppid() != parent) _exit(kill(getpid(), SIGKILL));
  for (const auto& [name, value] : what.environment) setenv(name.c_str(), value.c_str(), 1);
  if (ignore_children) signal(SIGCHLD, SIG_IGN);
  restore_file_limit();
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  const std::vector<char*> arguments = pointers(what.arguments);
  execvp(arguments.front(), arguments.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(error_pipe, &error, sizeof error);
  _exit(127);
}

// The terminal sends to the whole foreground group, so the child has those signals already.
bool from_terminal(const siginfo_t& info) { return info.si_code == SI_KERNEL; }

// True when the program has ended.
bool collect(pid_t child, Outcome& outcome) {
  int status = 0;
  while (true) {
    const pid_t got = waitpid(child, &status, WNOHANG | WUNTRACED);
    if (got < 0 && errno == EINTR) continue;
    if (got != child) return false;
    if (WIFSTOPPED(status)) {
      raise(SIGSTOP);  // so that the shell sees its job stopped
      continue;
    }
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return true;
  }
}

// Ends a program when somebody says so: first it is asked to, some looks later it is killed.
class Ending {
 public:
  Ending(pid_t child, const std::function<bool()>& ends) : child_(child), ends_(ends) {}

  bool wanted() const { return static_cast<bool>(ends_); }
  bool begun() const { return looks_ > 0; }
  void look() {
    if (!begun() && !ends_()) return;
    if (looks_ == 0) kill(child_, SIGTERM);
    if (looks_ == kPatience) kill(child_, SIGKILL);
    ++looks_;
  }

 private:
  static constexpr int kPatience = 20;  // looks

  const pid_t child_;
  const std::function<bool()>& ends_;
  int looks_ = 0;
};
constexpr struct timespec kLook { 0, 50'000'000 };

Outcome follow(pid_t child, const sigset_t& watched, const std::function<bool()>& ends) {
  Outcome outcome;
  Ending ending(child, ends);
  while (!collect(child, outcome)) {
    siginfo_t info{};
    const int got = ending.wanted() ? sigtimedwait(&watched, &info, &kLook) : sigwaitinfo(&watched, &info);
    if (ending.wanted()) ending.look();
    if (got <= 0 || got == SIGCHLD || from_terminal(info)) continue;
    kill(child, got);
  }
  outcome.ended = ending.begun();
  outcome.process = child;
  return outcome;
}

// The same Ctrl-C that ended the program must not end us before the report is made.
void forget_pending(const sigset_t& watched) {
  const struct timespec now {};
  while (sigtimedwait(&watched, nullptr, &now) > 0) {
  }
}

Status start_error(const std::string& program, int error) {
  const std::string words = system_words(error);
  if (error == EMFILE) return {StatusCode::io_error, fmt::format("{}: cannot be started: {}", program, words)};
  return {StatusCode::invalid_argument, fmt::format("{}: cannot be started: {}; check the program", program, words)};
}

}  // namespace

Result<Outcome> launch(const Launch& what) {
  sigset_t watched;
  sigset_t before;
  sigemptyset(&watched);
  for (const int number : kPassedOn) sigaddset(&watched, number);
  sigaddset(&watched, SIGCHLD);
  int error_pipe[2];
  if (pipe2(error_pipe, O_CLOEXEC) != 0) return start_error(what.arguments.front(), errno);
  sigprocmask(SIG_BLOCK, &watched, &before);
  const bool ignore_children = signal(SIGCHLD, SIG_DFL) == SIG_IGN;  // else the kernel would reap what we wait for
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(what, before, ignore_children, parent, error_pipe[1]);
  const int fork_error = errno;
  close(error_pipe[1]);
  int error = 0;
  const bool failed = child > 0 && read(error_pipe[0], &error, sizeof error) == sizeof error;
  close(error_pipe[0]);
  Result<Outcome> result = start_error(what.arguments.front(), child < 0 ? fork_error : error);
  if (failed) waitpid(child, nullptr, 0);
  if (child > 0 && !failed) result = follow(child, watched, what.ends);
  forget_pending(watched);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return result;
}

int end_like(const Outcome& outcome) {
  if (outcome.signal == 0) return outcome.exit_code;
  const struct rlimit no_core {};
  setrlimit(RLIMIT_CORE, &no_core);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, outcome.signal);
  signal(outcome.signal, SIG_DFL);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  raise(outcome.signal);
  return 128 + outcome.signal;  // a signal that does not kill us after all
}

}  // namespace reprise::tools

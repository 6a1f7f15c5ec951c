#include "replay/plans/planner_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "preload/base/causes.h"
#include "preload/files/out_of_the_way.h"
#include "preload/files/system_words.h"
#include "replay/base/run_log.h"
#include "replay/base/threads.h"

extern char** environ;

namespace reprise::replay {
namespace {

struct ChildStart {
  char** arguments;
  char** environment;
  uint32_t limit_seconds;
  pid_t program;
};

// The child's exit codes beside the planner's own: it was killed by a signal, took too long, could not be started.
enum : int { kKilled = 125, kTooLong = 126, kNotStarted = 127 };

// The caller ends when its parent, process `parent`, does: however that ends.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotStarted);  // it is gone already
}

// Waits for the child `planner` until it ends, or kills it at its time limit. SIGCHLD is blocked, so that it is kept
// until it is waited for.
int wait_for_planner(pid_t planner, uint32_t limit_seconds) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const time_t deadline = now.tv_sec + static_cast<time_t>(limit_seconds);
  int status = 0;
  while (waitpid(planner, &status, WNOHANG) == 0) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= deadline) {
      kill(planner, SIGKILL);
      waitpid(planner, &status, 0);
      return kTooLong;
    }
    const timespec second{1, 0};
    sigtimedwait(&ended, nullptr, &second);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
}

// Of the program's files copies would stay open as long as the planner runs: who waits for the end of a pipe, or for
// the lock of a recording, would wait for the planner instead of the program.
void close_all_behind(unsigned first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, first, ~0u, 0u) == 0) return;  // Linux 5.9
#endif
  const long most = std::min(sysconf(_SC_OPEN_MAX), 65536l);
  for (long file = first; file < most; ++file) close(static_cast<int>(file));
}

// What the planner prints is not the program's. Files are closed first: the program may have all that it may have.
void leave_files_of_process() {
  constexpr int kFirst = STDERR_FILENO + 1;
  close_all_behind(kFirst);
  const int null = open("/dev/null", O_RDWR);
  for (int file = 0; null >= 0 && file < kFirst; ++file) dup2(null, file);
  if (null >= kFirst) close(null);
}

// Runs between the program and the planner, in the program's memory: nothing here may allocate or lock. It never calls
// execve itself, because that would turn it into an ordinary child, which the program's wait() and its handler for
// SIGCHLD would see. The planner is this child's child, and its exit code becomes this child's. The thread that made
// this child stands still until it ends, so the child ends with the program and not before, and the planner with it.
int start_child(void* data) {
  const auto* const start = static_cast<const ChildStart*>(data);
  end_with(start->program);
  leave_files_of_process();
  // The program's handlers must not run here: they would see the program's own memory.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &standard, nullptr);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  const pid_t self = getpid();
  const pid_t planner = vfork();
  if (planner == 0) {
    end_with(self);
    sigemptyset(&blocked);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    execve(start->arguments[0], start->arguments, start->environment);
    _exit(kNotStarted);
  }
  _exit(planner < 0 ? kNotStarted : wait_for_planner(planner, start->limit_seconds));
}

bool hidden_from_child(const char* variable) noexcept {
  return std::strncmp(variable, "LD_PRELOAD=", 11) == 0 || std::strncmp(variable, "REPRISE_", 8) == 0;
}

// The text behind a key in the planner's status line (one JSON object of plain texts and numbers). "" when it is not
// there.
std::string text_of(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":\"");
  std::string text;
  for (size_t i = at == std::string::npos ? line.size() : at + key.size() + 4; i < line.size() && line[i] != '"'; ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) ++i;
    text += line[i];
  }
  return text;
}

// A number behind a key in the same line. 0 when it is not there.
uint64_t number_of(const std::string& line, const std::string& key) {
  const size_t at = line.find("\"" + key + "\":");
  return at == std::string::npos ? 0 : std::strtoull(line.c_str() + at + key.size() + 3, nullptr, 10);
}

// What the planner says; `error` is 0, or why that cannot be read.
std::string first_line(const std::string& path, int* error) {
  std::ifstream file(path);
  *error = file.is_open() ? 0 : errno;
  std::string line;
  std::getline(file, line);
  return line;
}

// Of a file that nobody knows by its name: the message has none.
Result<plan::Plan> read_unnamed(const std::string& path) {
  Result<plan::Plan> plan = plan::read_plan(path);
  if (plan.ok()) return plan;
  std::string message = plan.status().message();
  if (const size_t at = message.find(" " + path); at != std::string::npos) message.erase(at, path.size() + 1);
  return Status{plan.status().code(), message};
}

// What the planner writes for us, or reads: a file of that name, or, without a name, memory that it finds below /proc
// while this process lives. So nothing is left of a program that ends while it is planned.
class AnswerFile {
 public:
  explicit AnswerFile(const std::string& name) : path_(name) {
    if (!name.empty()) return;
    memory_ = move_out_of_the_way(memfd_create("reprise-plan", MFD_CLOEXEC));
    if (memory_ < 0) why_ = system_words(errno);
    if (memory_ >= 0) path_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(memory_);
  }
  ~AnswerFile() {
    if (memory_ >= 0) close(memory_);
  }
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;
  // Empty: there is no memory, and why.
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }

 private:
  std::string path_;
  std::string why_;
  int memory_ = -1;
};

std::vector<std::string> words_for(const PlanRequest& request, plan::Safety safety, const AnswerFile& plan,
                                   const AnswerFile& status, const AnswerFile& sizes) {
  std::vector<std::string> words = {request.planner,
                                    "plan",
                                    request.trace,
                                    "--budget",
                                    std::to_string(request.budget_bytes),
                                    "--policy",
                                    request.policy,
                                    "--safety",
                                    plan::name_of(safety),
                                    "--from",
                                    std::to_string(request.from_call),
                                    "--calls",
                                    std::to_string(request.least_calls),
                                    "--share",
                                    std::to_string(request.least_share),
                                    "-o",
                                    plan.path(),
                                    "--quiet",
                                    "--status",
                                    status.path()};
  if (request.best_start) words.emplace_back("--best-start");
  if (!request.sizes.empty()) {
    std::ofstream file(sizes.path());
    for (const auto& [allocation, size] : request.sizes) file << allocation << ' ' << size << '\n';
    words.insert(words.end(), {"--sizes", sizes.path()});
  }
  // The variables are hidden from the child.
  if (!request.nvdisasm.empty()) words.insert(words.end(), {"--nvdisasm", request.nvdisasm});
  if (request.facts.empty()) {
    words.emplace_back("--no-facts");
  } else {
    words.insert(words.end(), {"--facts", request.facts});
  }
  return words;
}

std::string why_no_answer(int code, int unread) {
  if (code == kKilled) return phrase<Cause::planner_killed>();
  return unread == 0 || unread == ENOENT ? phrase<Cause::planner_failed>()
                                         : words<Cause::planner_unread>(system_words(unread));
}

}  // namespace

int run_unseen(const std::vector<std::string>& arguments, uint32_t limit_seconds) noexcept {
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (!hidden_from_child(*variable)) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  constexpr size_t kStackBytes = 256 * 1024;
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return -1;
  ChildStart start{pointers.data(), environment.data(), limit_seconds, getpid()};
  // No exit signal: the program's handler for SIGCHLD stays silent and its wait() passes over the child. This thread
  // stands still until the child is gone.
  const int child = clone(start_child, static_cast<char*>(stack) + kStackBytes, CLONE_VM | CLONE_VFORK, &start);
  int status = -1;
  if (child > 0) {
    while (waitpid(child, &status, static_cast<int>(__WCLONE)) < 0 && errno == EINTR) {
    }
  }
  munmap(stack, kStackBytes);
  return child > 0 ? status : -1;
}

namespace {

void conclude(PlannerAnswer* to, PlanState state) noexcept {
  to->state.store(state, std::memory_order_release);
  to->state.notify_all();
}

// `kept`: nullptr, or where it is kept for the next run.
void take(Result<plan::Plan> plan, const PlanPlace& place, plan::Safety safety, KeptPlans* kept,
          PlannerAnswer* to) noexcept {
  auto* const plan_index = new PlanIndex;  // lives as long as the process
  std::string why;
  // As the planner made it: the index adds edges that its order need not hold.
  const plan::Plan as_made = plan.ok() && kept != nullptr ? plan.value() : plan::Plan();
  if (!plan.ok()) {
    to->message = plan.status().message();
  } else if (make_plan_index(std::move(plan.value()), place.zone, place.chunk_bytes, plan_index, &why, safety,
                             place.ranges_at)) {
    to->plan_index = plan_index;
    const Status status = kept == nullptr ? Status{} : kept->keep(as_made);
    if (!status.ok()) say<Cause::plan_not_kept>(status.message());
    conclude(to, PlanState::ready);
    return;
  } else {
    to->message = why;
  }
  delete plan_index;
  conclude(to, PlanState::impossible);
}

// The same question, about what was recorded before call `until`, however long it takes: the program goes on by the
// first answer.
void search_on(const PlanRequest& request, uint64_t until, const PlanPlace& place, plan::Safety safety,
               PlannerAnswer* to) noexcept {
  const AnswerFile plan_file(request.plan);
  const AnswerFile status_file{std::string()};
  const AnswerFile sizes_file{std::string()};
  Result<plan::Plan> plan = Status{StatusCode::internal, ""};
  const uint64_t started_ns = RunLogWriter::now_ns();
  if (!plan_file.path().empty() && !status_file.path().empty()) {
    std::vector<std::string> arguments = words_for(request, safety, plan_file, status_file, sizes_file);
    arguments.insert(arguments.end(), {"--until", std::to_string(until), "--nice"});
    const int status = run_unseen(arguments, request.limit_seconds);
    if (status == 0) plan = read_unnamed(plan_file.path());
  }
  PlanState state = PlanState::none;
  while ((state = to->state.load(std::memory_order_acquire)) != PlanState::running) to->state.wait(state);
  to->searches_on = false;
  to->is_better = true;
  to->recording_ns = 0;
  to->planner_ns = RunLogWriter::now_ns() - started_ns;
  const PlanIndex* const first = to->plan_index;
  if (first == nullptr || !plan.ok() || plan.value().predicted_ns >= first->plan.predicted_ns) {
    return conclude(to, PlanState::none);
  }
  const Zone& before = first->ranges;
  take(std::move(plan), {place.zone, before.base + before.bytes - place.zone.base, place.chunk_bytes}, safety,
       request.kept.get(), to);
}

void run(const PlanRequest& request, Recorder* recorder, const PlanPlace& place, plan::Safety safety,
         PlannerAnswer* to) noexcept {
  // As long as the planner may take: on a full machine the recording's own thread may stand still for many seconds.
  constexpr uint64_t kMostMilliseconds = UINT32_MAX;
  const uint64_t limit = std::min(request.limit_seconds * uint64_t{1000}, kMostMilliseconds);
  if (limit == 0) {
    to->message = phrase<Cause::planner_not_allowed>();
    conclude(to, PlanState::impossible);
    return;
  }
  const uint64_t asked_ns = RunLogWriter::now_ns();
  if (recorder != nullptr && !recorder->flush(static_cast<uint32_t>(limit))) {
    to->message = phrase<Cause::recording_unwritten>();
    conclude(to, PlanState::impossible);
    return;
  }
  const AnswerFile plan_file(request.plan);
  const AnswerFile status_file{std::string()};
  const AnswerFile sizes_file{std::string()};
  if (plan_file.path().empty() || status_file.path().empty()) {
    to->message = words<Cause::no_memory_for_plan>((plan_file.path().empty() ? plan_file : status_file).why());
    conclude(to, PlanState::impossible);
    return;
  }
  std::vector<std::string> arguments = words_for(request, safety, plan_file, status_file, sizes_file);
  if (request.first) arguments.emplace_back("--first");
  const uint64_t started_ns = RunLogWriter::now_ns();
  const int status = run_unseen(arguments, request.limit_seconds);
  to->recording_ns = started_ns - asked_ns;
  to->planner_ns = RunLogWriter::now_ns() - started_ns;
  int unread = 0;
  const std::string line = first_line(status_file.path(), &unread);
  to->is_better = to->is_part = to->is_early = false;
  to->searches_on = status == 0 && text_of(line, "status") == "first";
  if (status == 0 && text_of(line, "status") == "fits") {  // by the time the question was read
    to->message = phrase<Cause::everything_fits>();
    conclude(to, PlanState::not_yet);
  } else if (status == 0) {
    Result<plan::Plan> plan = read_unnamed(plan_file.path());
    const bool searches_on = to->searches_on = to->searches_on && plan.ok();
    take(std::move(plan), place, safety, request.kept.get(), to);
    if (searches_on) search_on(request, number_of(line, "until"), place, safety, to);
  } else {
    const int code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : kNotStarted;
    const bool started = code != kNotStarted;
    if (code == kTooLong) {
      to->message = words<Cause::planner_too_slow>(request.limit_seconds);
    } else if (started) {
      to->message = text_of(line, "message");
      // What the planner read is no file that anybody knows, or what was recorded just now.
      if (to->message.rfind(request.trace + ": ", 0) == 0) to->message.erase(0, request.trace.size() + 2);
      if (to->message.empty()) to->message = why_no_answer(code, unread);
    } else {
      to->message = words<Cause::planner_unstarted>(request.planner);
    }
    // A stream of calls that is no iteration yet may become one; a budget that is too small stays too small.
    to->is_part = started && text_of(line, "status") == "part";
    to->is_early = started && text_of(line, "status") == "early";
    const bool later = to->is_part || to->is_early || (started && text_of(line, "status") == "no_iteration");
    const uint64_t minimum = started ? number_of(line, "minimum_bytes") : 0;
    to->needed_bytes = minimum > request.budget_bytes ? minimum : 0;
    to->needed_because = text_of(line, "minimum_because");
    conclude(to, later ? PlanState::not_yet : PlanState::impossible);
  }
}

}  // namespace

void PlannerProcess::ask(const PlanRequest& request, Recorder* recorder, const PlanPlace& place) noexcept {
  answer_->state.store(PlanState::running, std::memory_order_relaxed);
  if (!start_thread("reprise plan", [request, recorder, place, safety = safety_, to = answer_] {
        run(request, recorder, place, safety, to.get());
      })) {
    answer_->message = phrase<Cause::planner_unthreaded>();
    conclude(answer_.get(), PlanState::impossible);
  }
}

void PlannerProcess::load(const std::string& path, const PlanPlace& place) noexcept {
  take(plan::read_plan(path), place, safety_, nullptr, answer_.get());
}

}  // namespace reprise::replay

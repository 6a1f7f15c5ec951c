#include "preload/start/entry.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>

#include "preload/base/causes.h"
#include "preload/base/config.h"
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/base/runtime.h"
#include "preload/base/sequence.h"
#include "preload/calls/enforcer_factory.h"
#include "preload/defragment/defragmenter.h"
#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/files/earlier_program.h"
#include "preload/files/out_of_the_way.h"
#include "preload/files/system_words.h"
#include "preload/start/forwarder.h"

namespace reprise {
namespace {

pthread_once_t register_once = PTHREAD_ONCE_INIT;
pthread_once_t start_once = PTHREAD_ONCE_INIT;
bool finished = false;
const Config* settings_in_force = nullptr;

// A fork child cannot use CUDA. It only forwards, so that it gets the driver's own errors, and leaves the parent's
// files alone.
void child_of_fork() {
  __atomic_store_n(&reprise_watch, uint8_t{0}, __ATOMIC_RELEASE);
  __atomic_store_n(&detail::defragmenting, false, __ATOMIC_RELEASE);
  __atomic_store_n(&finished, true, __ATOMIC_RELEASE);
  if (detail::runtime.recorder != nullptr) detail::runtime.recorder->abandon();
  if (detail::runtime.handler != nullptr) detail::runtime.handler->abandon();
}

void record_machine(Recorder* recorder) {
  recorder->info("driver.path", driver_path());
  int version = 0;
  if (driver().cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    recorder->info("driver.version", static_cast<uint64_t>(version));
  }
  CUdevice device = 0;
  char name[256];
  size_t bytes = 0;
  if (driver().cuDeviceGet(&device, 0) != CUDA_SUCCESS) return;
  if (driver().cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS) recorder->info("device.name", name);
  if (driver().cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS) recorder->info("device.memory", bytes);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  size_t granularity = 0;
  if (driver().cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
      CUDA_SUCCESS) {
    recorder->info("device.granularity", granularity);
  }
}

// `run` and `record` keep what each process records until all of them have ended, and then choose.
bool keeps_each_recording(const Config& settings) { return settings.launched() && settings.keep; }

enum class TraceFile : uint8_t { free, taken, of_earlier };

// Processes that the program starts inherit the variables: the first one that uses CUDA records, the others must not
// write into its file. The lock goes with the process; what it has written stays where a launcher keeps it, or it is of
// this command and there is no launcher. free also where the file cannot be locked: the recorder will tell.
TraceFile claim_trace(const char* path, const Config& settings) {
  const int file = move_out_of_the_way(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (file < 0) return TraceFile::free;
  const bool locked = flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  struct stat info {};
  const bool is_written = fstat(file, &info) == 0 && info.st_size > 0;
  TraceFile state = locked ? TraceFile::free : TraceFile::taken;
  if (is_written && keeps_each_recording(settings)) state = TraceFile::taken;
  if (state == TraceFile::free && is_written && !settings.launched()) {
    if (is_of_this_command(info, "REPRISE_TRACE", path)) {
      state = TraceFile::of_earlier;
    } else {
      say<Cause::trace_replaced>(path);
    }
  }
  if (state != TraceFile::free) close(file);
  return state;
}

// What the user calls the trace: `reprise run` gives a link to the file that was named. `room` holds it.
const char* name_of_trace(const char* trace, char (&room)[PATH_MAX]) {
  const ssize_t bytes = readlink(trace, room, sizeof room - 1);
  if (bytes <= 0) return trace;
  room[bytes] = '\0';
  return room;
}

// A plan is made from what is recorded. An audit plans nothing.
bool plans(const Config& settings) { return !settings.audit && settings.budget.given() && settings.plan == nullptr; }

Recorder* open_recorder(const Config& settings) {
  if (settings.trace == nullptr) return nullptr;
  const char* why = "";
  Recorder* recorder = Recorder::open(settings.trace, &why, settings.call_sites);
  if (recorder == nullptr) {
    char room[PATH_MAX];
    say<Cause::trace_not_writable>(name_of_trace(settings.trace, room), why);
    return nullptr;
  }
  record_machine(recorder);
  return recorder;
}

// The path of an open file, which is kept, and whose name is taken away: nothing is left of it, however the program
// ends. Other processes of this user find it there as long as this one lives. The name itself, where there is no /proc.
char* without_name(const char* path, int file) {
  char link[64];
  std::snprintf(link, sizeof link, "/proc/%ld/fd/%d", static_cast<long>(getpid()), file);
  if (access(link, R_OK | W_OK) == 0) {
    unlink(path);
    return strdup(link);
  }
  close(file);
  return strdup(path);
}

// Where temporary files go: the launcher has a private folder for those of its run, in which it gives the trace a name,
// and takes all of it away. The user's folder for temporary files, where there is no launcher.
std::string temporary_folder(const Config& asked) {
  const std::string trace = asked.trace != nullptr ? asked.trace : "";
  const size_t slash = trace.rfind('/');
  if (asked.launched() && slash != std::string::npos) return trace.substr(0, slash);
  const char* const wanted = getenv("TMPDIR");
  return wanted != nullptr && *wanted == '/' ? wanted : "/tmp";
}

// A new file there or, where nothing can be written, in memory, which has no name. -1: neither.
int temporary_file(std::string* path, const std::string& folder) {
  *path = folder + "/reprise-" + std::to_string(getpid()) + "-XXXXXX.trace";
  int file = mkostemps(path->data(), 6, O_CLOEXEC);
  if (file < 0) file = memfd_create("reprise-trace", MFD_CLOEXEC);
  return move_out_of_the_way(file);
}

// A new file beside the named one, where the user has room for recordings: its name and more. Empty: there can be none.
std::string new_file_beside(const char* named) {
  const std::string own = std::string(named) + "." + std::to_string(getpid());
  for (int number = 1; number <= 1000; ++number) {  // a process may become one program after the other
    std::string path = own + "-" + std::to_string(number);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return {};
    close(file);
    return path;
  }
  return {};
}

// A link in the folder to such a file, by which the launcher finds it. Empty: `trace` is no link, or there can be none.
std::string linked_file(const char* trace, const std::string& folder) {
  char room[PATH_MAX];
  const char* const named = name_of_trace(trace, room);
  const std::string path = named == trace ? std::string() : new_file_beside(named);
  if (path.empty()) return {};
  std::string link = folder + "/reprise-" + path.substr(std::strlen(named) + 1) + ".trace";
  if (symlink(path.c_str(), link.c_str()) == 0) return link;
  unlink(path.c_str());
  return {};
}

// Records beside what another process of this run has recorded, for the launcher to choose from.
bool record_beside(Config* settings, const std::string& folder) {
  if (!keeps_each_recording(*settings)) return false;
  std::string path = linked_file(settings->trace, folder);
  if (path.empty()) {
    const int file = temporary_file(&path, folder);
    if (file >= 0) close(file);
    if (access(path.c_str(), W_OK) != 0) return false;
  }
  settings->trace = strdup(path.c_str());
  return settings->trace != nullptr;
}

// Records beside what an earlier program of this command has recorded.
Config beside_earlier(Config settings) {
  const std::string path = new_file_beside(settings.trace);
  if (path.empty()) {
    say<Cause::trace_has_no_place>(settings.trace);
  } else {
    say<Cause::trace_beside>(settings.trace, path);
  }
  settings.trace = path.empty() ? nullptr : strdup(path.c_str());
  return settings;
}

// With another trace where a process has that one, or without: what is planned from then is a private one.
Config without_taken_trace(Config settings, const std::string& folder) {
  if (settings.trace == nullptr) return settings;
  const TraceFile file = claim_trace(settings.trace, settings);
  if (file == TraceFile::free) return settings;
  if (file == TraceFile::of_earlier) return beside_earlier(settings);
  if (record_beside(&settings, folder)) return settings;
  char room[PATH_MAX];
  const char* const name = name_of_trace(settings.trace, room);
  const bool is_named = name == room || !settings.launched();  // else a file of the launcher's own
  if (!plans(settings)) {
    say<Cause::trace_taken>(name);
  } else if (is_named) {
    say<Cause::trace_taken_planned>(name);
  } else {
    say<Cause::other_process_recorded>();
  }
  settings.trace = nullptr;
  return settings;
}

// With a budget and nothing to plan from, the calls are recorded into a private file: that is what the planner reads.
Config with_private_trace(Config settings, const std::string& folder) {
  if (!plans(settings) || settings.trace != nullptr) return settings;
  std::string path;
  const int file = temporary_file(&path, folder);
  if (file < 0) {
    say<Cause::no_temporary_file>(path, system_words(errno));
    return settings;
  }
  settings.keep = settings.keep && access(path.c_str(), F_OK) == 0;  // what is in memory has no name to be kept by
  settings.trace = settings.keep ? strdup(path.c_str()) : without_name(path.c_str(), file);
  if (settings.keep) close(file);
  settings.trace_is_private = settings.trace != nullptr;
  return settings;
}

Handler* choose_handler(const Config& settings, Recorder* recorder, uint8_t* flags) {
  *flags = kWatching;
  if (settings.manages()) {
    Handler* enforcer = make_enforcer != nullptr ? make_enforcer(settings, recorder) : nullptr;
    if (enforcer != nullptr) {
      *flags = kWatching | kManaging;
      return enforcer;
    }
    if (make_enforcer == nullptr) say<Cause::not_built_to_manage>();
  }
  // Without the enforcer, a recording that was made only to plan from has no reader.
  if (recorder == nullptr || settings.trace_is_private) return nullptr;
  detail::runtime.activity = choose_activity_source(settings.activity);
  recorder->info("activity.source", detail::runtime.activity != nullptr ? detail::runtime.activity->name() : "none");
  return make_forwarder(recorder, detail::runtime.activity);
}

void remove_private_trace() {
  if (settings_in_force->trace_is_private && !settings_in_force->keep) unlink(settings_in_force->trace);
}

// Runs before finish(), which was registered first.
void keep_exit_code(int code, void*) { detail::runtime.exit_code = code & 0xff; }

void finish_at_exit() {
  (void)atexit(finish);
  (void)on_exit(keep_exit_code, nullptr);
}

void start_defragmenting(const Config& settings) {
  detail::runtime.defragmenter = new (std::nothrow) Defragmenter(settings);
  if (detail::runtime.defragmenter == nullptr) return;
  pthread_atfork(nullptr, nullptr, child_of_fork);
  (void)atexit(finish);
  __atomic_store_n(&detail::defragmenting, true, __ATOMIC_RELEASE);
  say<Cause::started_defragmenting>(driver_path());
}

void start_once_only() {
  if (disabled()) return say_unreadable_switch();
  const Config& asked = config();
  set_log_level(std::strcmp(asked.log, "debug") == 0  ? LogLevel::debug
                : std::strcmp(asked.log, "info") == 0 ? LogLevel::info
                                                      : LogLevel::warn);
  if (!asked.launched()) {  // the launcher has looked already
    say_misspelt(environ);
    say_without_effect(asked, [](const char* name) -> const char* { return getenv(name); });
  }
  if (!asked.manages() && asked.trace == nullptr) {
    if (asked.defragment) start_defragmenting(asked);
    return;
  }
  if (asked.defragment) {
    say<Cause::defragment_not_alone>();
  }
  mark_internal_thread();  // the questions below are no calls of the program
  const std::string folder = temporary_folder(asked);
  const Config& settings = *new Config(with_private_trace(without_taken_trace(asked, folder), folder));
  settings_in_force = &settings;
  detail::runtime.recorder = open_recorder(settings);
  uint8_t flags = 0;
  detail::runtime.handler = choose_handler(settings, detail::runtime.recorder, &flags);
  detail::inside_hook = false;
  if (detail::runtime.handler == nullptr) {
    if (detail::runtime.recorder != nullptr) detail::runtime.recorder->finish();
    remove_private_trace();
    return;
  }
  pthread_atfork(nullptr, nullptr, child_of_fork);
  finish_at_exit();
  __atomic_store_n(&reprise_watch, flags, __ATOMIC_RELEASE);
  say<Cause::started>(driver_path(),
                      (flags & kManaging) != 0 ? phrase<Cause::managing_memory>() : phrase<Cause::forwarding>(),
                      detail::runtime.recorder != nullptr ? phrase<Cause::and_recording>() : "");
}

// The program's exit handlers from before cuInit call a driver that has shut down, and get its own answer: nothing is
// deferred any more.
void after_driver_ended() {
  CUcontext context = nullptr;
  if (watch_flags() == 0 || driver().cuCtxGetCurrent(&context) != CUDA_ERROR_DEINITIALIZED) return;
  __atomic_store_n(&reprise_watch, uint8_t{0}, __ATOMIC_RELEASE);
  if (detail::runtime.handler != nullptr) detail::runtime.handler->abandon();
}

void register_end() { (void)atexit(after_driver_ended); }

// For what the handler of atexit() misses: there was no room for one more, say.
__attribute__((destructor)) void at_unload() { finish(); }

}  // namespace

void before_driver_starts() noexcept { pthread_once(&register_once, register_end); }

void start() noexcept { pthread_once(&start_once, start_once_only); }

void finish() noexcept {
  if ((watch_flags() == 0 && !defragmenting()) || __atomic_exchange_n(&finished, true, __ATOMIC_ACQ_REL)) return;
  const bool was_inside = detail::inside_hook;
  mark_internal_thread();
  if (detail::runtime.defragmenter != nullptr) {
    detail::runtime.defragmenter->finish();
    detail::inside_hook = was_inside;
    return;
  }
  // Other threads may still call: the handler keeps answering them, the recorder ignores them once it is finished.
  detail::runtime.handler->finish();
  if (detail::runtime.recorder != nullptr) detail::runtime.recorder->finish();
  remove_private_trace();
  detail::inside_hook = was_inside;
}

}  // namespace reprise

REPRISE_EXPORT void reprise_mark(const char* name) noexcept {
  using namespace reprise;
  if (name == nullptr || watch_flags() == 0 || runtime().recorder == nullptr) return;
  runtime().recorder->mark(name, 0, next_sequence());
}

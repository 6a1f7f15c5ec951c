#include "preload/trace/writer.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>

#include "preload/files/system_words.h"
#include "preload/trace/chunks.h"
#include "preload/trace/ring.h"

namespace reprise::trace {
namespace {

constexpr uint32_t kRingBytes = 4u << 20;
constexpr uint32_t kMaxBuffers = 256;          // threads that record at the same time
constexpr uint64_t kRoundNs = 10'000'000;      // between two rounds of the writer thread
constexpr uint64_t kChunkAgeNs = 100'000'000;  // a kill loses at most this much time
constexpr uint64_t kCloseWaitNs = 10'000'000'000;

uint64_t now_ns() noexcept {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

// A word to sleep on: wait() returns when wake() came after `seen` was read, or after `ns`.
class Bell {
 public:
  uint32_t seen() const noexcept { return word_.load(std::memory_order_acquire); }
  void wake() noexcept {
    word_.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  void wait(uint32_t seen, uint64_t ns) noexcept {
    const timespec time{static_cast<time_t>(ns / 1'000'000'000u), static_cast<long>(ns % 1'000'000'000u)};
    ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> word_{0};
};

struct ThreadBuffer {
  RecordRing ring;
  std::atomic<bool> taken{true};
  bool stalled = false;  // a wait for room has failed: drop at once until there is room
  // Written by the buffer's thread; the writer thread looks at the end.
  std::atomic<uint64_t> lost{0};      // records dropped since the last one that was kept
  std::atomic<uint64_t> sequence{0};  // of the last call that was kept
  ThreadBuffer* next = nullptr;
};

// One a thread that has recorded something; a thread that ends leaves its own to the next one.
class ThreadBuffers {
 public:
  ThreadBuffer* first() const noexcept { return first_.load(std::memory_order_acquire); }
  // For the calling thread; nullptr: there are too many, or no memory.
  ThreadBuffer* take() noexcept;

 private:
  std::atomic<ThreadBuffer*> first_{nullptr};
  std::atomic<uint32_t> count_{0};
};

ThreadBuffer* ThreadBuffers::take() noexcept {
  for (ThreadBuffer* buffer = first(); buffer != nullptr; buffer = buffer->next) {
    bool expected = false;
    if (!buffer->taken.load(std::memory_order_relaxed) &&
        buffer->taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) {
      return buffer;
    }
  }
  if (count_.fetch_add(1, std::memory_order_relaxed) >= kMaxBuffers) {
    count_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  auto* buffer = new (std::nothrow) ThreadBuffer;
  if (buffer == nullptr || !buffer->ring.create(kRingBytes)) return nullptr;
  buffer->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(buffer->next, buffer, std::memory_order_release, std::memory_order_relaxed)) {
  }
  return buffer;
}

// What the program lost by being recorded.
struct RecordLosses {
  std::atomic<uint64_t> dropped{0};  // records
  std::atomic<uint64_t> waits{0};    // for room
  std::atomic<uint64_t> waited_ns{0};
};

struct Writer::State {
  ChunkFile file;
  pid_t process = 0;
  pthread_t thread{};
  Writer::BackgroundWork background_work = nullptr;
  void* background_user = nullptr;

  std::atomic<bool> accepting{true};
  std::atomic<bool> closing{false};
  std::atomic<bool> finished{false};
  std::atomic<bool> half_full{false};
  RecordLosses losses;
  std::atomic<uint32_t> flush_wanted{0};
  std::atomic<uint32_t> flush_done{0};
  ThreadBuffers buffers;
  Bell work;      // rung for the writer thread
  Bell progress;  // rung by it after a flush and at its end

  void drain() noexcept;
  bool work_a_slice() noexcept;
  void append_info(const char* key, uint64_t value) noexcept;
  void run() noexcept;
  void write_end() noexcept;
};

namespace {

struct ThreadState {
  Writer::State* owner = nullptr;
  ThreadBuffer* buffer = nullptr;
  bool is_writer = false;
};
// initial-exec: plain register-relative access, no allocation by the loader at a thread's first touch.
__attribute__((tls_model("initial-exec"))) constinit thread_local ThreadState thread_state;

pthread_key_t thread_exit_key;
pthread_once_t thread_exit_once = PTHREAD_ONCE_INIT;
bool have_thread_exit_key = false;

// A thread that ends hands its buffer on; what it holds is still drained.
void on_thread_exit(void* buffer) {
  thread_state.owner = nullptr;
  thread_state.buffer = nullptr;
  static_cast<ThreadBuffer*>(buffer)->taken.store(false, std::memory_order_release);
}

void make_thread_exit_key() { have_thread_exit_key = ::pthread_key_create(&thread_exit_key, on_thread_exit) == 0; }

void say_failed(const ChunkFile& file) noexcept {
  char line[256];
  char text[128];
  const char* const reason = ::strerror_r(file.problem_errno(), text, sizeof text);
  const int size = std::snprintf(line, sizeof(line), "reprise: %s: %s; recording stopped\n", file.problem(), reason);
  if (size > 0) (void)!::write(STDERR_FILENO, line, static_cast<size_t>(size));
}

// Starts the writer thread with every signal blocked: the program's handlers never run on it.
bool start_thread(Writer::State* state) noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto body = [](void* argument) -> void* {
    static_cast<Writer::State*>(argument)->run();
    return nullptr;
  };
  const int result = ::pthread_create(&state->thread, nullptr, body, state);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (result == 0) ::pthread_setname_np(state->thread, "reprise-trace");
  errno = result;
  return result == 0;
}

// The calling thread's buffer in `state`; its first record takes one.
ThreadBuffer* buffer_of_thread(Writer::State* state) noexcept {
  ThreadState& mine = thread_state;
  if (mine.owner == state) return mine.buffer;
  if (mine.buffer != nullptr) mine.buffer->taken.store(false, std::memory_order_release);
  mine.buffer = state->buffers.take();
  mine.owner = mine.buffer != nullptr ? state : nullptr;
  if (have_thread_exit_key) ::pthread_setspecific(thread_exit_key, mine.buffer);
  return mine.buffer;
}

// The deadline moves on as long as the writer thread takes records away.
void* wait_for_room(Writer::State* state, ThreadBuffer* buffer, uint32_t bytes) noexcept {
  if (buffer->stalled || thread_state.is_writer) return nullptr;
  const uint64_t begin = now_ns();
  uint64_t now = begin;
  uint64_t progress = begin;
  uint64_t used = buffer->ring.used();
  void* space = nullptr;
  while (space == nullptr && state->accepting.load(std::memory_order_relaxed) &&
         now < progress + Writer::kFullWaitMs * 1'000'000ull) {
    state->work.wake();
    const timespec pause{0, 200'000};
    ::nanosleep(&pause, nullptr);
    space = buffer->ring.reserve(bytes);
    now = now_ns();
    if (buffer->ring.used() == used) continue;
    used = buffer->ring.used();
    progress = now;
  }
  state->losses.waits.fetch_add(1, std::memory_order_relaxed);
  state->losses.waited_ns.fetch_add(now - begin, std::memory_order_relaxed);
  buffer->stalled = space == nullptr;
  return space;
}

// Between which calls of this thread records were dropped, behind the record that was kept again. false: there is no
// room to say so, and the next one will.
__attribute__((noinline)) bool note_gap(ThreadBuffer* buffer, uint64_t sequence) noexcept {
  auto* gap = static_cast<GapRecord*>(buffer->ring.reserve(sizeof(GapRecord)));
  if (gap == nullptr) return false;
  *gap = {{RecordKind::gap, 0, sizeof(GapRecord), sequence},
          buffer->sequence.load(std::memory_order_relaxed),
          buffer->lost.load(std::memory_order_relaxed)};
  buffer->ring.commit();
  buffer->lost.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace

Writer* Writer::open(const char* path, const char** why) noexcept {
  const auto refuse = [&](const char* what) -> Writer* {
    char line[4400];
    std::snprintf(line, sizeof(line), "%s %s: %s", what, path, system_words(errno).c_str());
    if (why != nullptr) *why = ::strdup(line);
    return nullptr;
  };
  ::pthread_once(&thread_exit_once, make_thread_exit_key);
  auto* state = new (std::nothrow) State;
  auto* writer = new (std::nothrow) Writer;
  if (state == nullptr || writer == nullptr) {
    errno = ENOMEM;
    return refuse("cannot record into");
  }
  writer->state_ = state;
  state->process = ::getpid();
  if (const char* problem = state->file.open(path); problem != nullptr) return refuse(problem);
  if (!start_thread(state)) return refuse("cannot start the thread that writes");
  return writer;
}

void Writer::set_background_work(BackgroundWork work, void* user) noexcept {
  // Both are read by the writer thread only after a bell rung below; the pair is set before any record exists.
  state_->background_user = user;
  __atomic_store_n(&state_->background_work, work, __ATOMIC_RELEASE);
}

void* Writer::reserve(uint32_t bytes) noexcept {
  State* state = state_;
  // The writer thread itself may still add what its background work finds while the trace is being closed.
  if (!state->accepting.load(std::memory_order_relaxed) && !thread_state.is_writer) return nullptr;
  ThreadBuffer* buffer = buffer_of_thread(state);
  void* space = nullptr;
  // A record still open means that a signal handler interrupted this thread between reserve and commit.
  if (buffer != nullptr && bytes <= kMaxRecordBytes && !buffer->ring.reserved()) {
    space = buffer->ring.reserve(bytes);
    if (space == nullptr)
      space = wait_for_room(state, buffer, bytes);
    else
      buffer->stalled = false;
  }
  if (space == nullptr && !thread_state.is_writer) {
    state->losses.dropped.fetch_add(1, std::memory_order_relaxed);
    if (buffer != nullptr) buffer->lost.fetch_add(1, std::memory_order_relaxed);
  }
  return space;
}

void Writer::commit() noexcept {
  State* state = state_;
  if (thread_state.owner != state) return;
  ThreadBuffer* const buffer = thread_state.buffer;
  const uint64_t sequence = buffer->ring.open_record()->sequence;
  const bool half_full = buffer->ring.commit();
  if (sequence != 0) {
    const bool kept_all = buffer->lost.load(std::memory_order_relaxed) == 0;
    if (kept_all || note_gap(buffer, sequence)) buffer->sequence.store(sequence, std::memory_order_relaxed);
  }
  if (half_full && !state->half_full.exchange(true, std::memory_order_relaxed)) {
    state->work.wake();
  }
}

void Writer::State::drain() noexcept {
  half_full.store(false, std::memory_order_relaxed);
  for (ThreadBuffer* buffer = buffers.first(); buffer != nullptr; buffer = buffer->next) {
    const bool sane = buffer->ring.drain([this](const RecordHeader* record) { return file.append(record); });
    if (!sane) file.fail("the program wrote into the recorder's buffers", EFAULT);
  }
}

// True: there is more to do.
bool Writer::State::work_a_slice() noexcept {
  const auto background = __atomic_load_n(&background_work, __ATOMIC_ACQUIRE);
  return background != nullptr && background(background_user);
}

void Writer::State::append_info(const char* key, uint64_t value) noexcept {
  struct {
    InfoRecord record;
    char text[64];
  } info{};
  const int size = std::snprintf(info.text, sizeof(info.text), "%s=%lu", key, value);
  info.record.text_bytes = static_cast<uint32_t>(size);
  info.record.header = {RecordKind::info, 0, static_cast<uint32_t>(sizeof(info)), 0};
  file.append(&info.record.header);
}

void Writer::State::write_end() noexcept {
  if (losses.waits.load(std::memory_order_relaxed) > 0) {
    append_info("recorder.waits", losses.waits.load(std::memory_order_relaxed));
    append_info("recorder.waited_ns", losses.waited_ns.load(std::memory_order_relaxed));
  }
  for (ThreadBuffer* buffer = buffers.first(); buffer != nullptr; buffer = buffer->next) {
    const uint64_t lost = buffer->lost.load(std::memory_order_relaxed);
    const GapRecord gap{{RecordKind::gap, 0, sizeof(GapRecord), UINT64_MAX}, buffer->sequence, lost};
    if (lost != 0) file.append(&gap.header);
  }
  EndRecord end{};
  end.header = {RecordKind::end, 0, sizeof(end), UINT64_MAX};
  end.dropped_records = losses.dropped.load(std::memory_order_relaxed);
  end.op_count = file.op_count();
  file.append(&end.header);
  file.write_chunk();
}

void Writer::State::run() noexcept {
  thread_state.is_writer = true;
  uint64_t chunk_started_ns = 0;
  while (file.problem() == nullptr) {
    const uint32_t seen = work.seen();
    const bool last = closing.load(std::memory_order_acquire);
    const uint32_t wanted = flush_wanted.load(std::memory_order_acquire);
    drain();
    const bool more = work_a_slice();
    if (!more) drain();  // what the work has found
    const uint64_t now = now_ns();
    if (file.empty()) chunk_started_ns = now;
    const bool ending = last && !more;
    const bool flushing = !more && wanted != flush_done.load(std::memory_order_relaxed);
    if (ending || flushing || file.large() || now - chunk_started_ns >= kChunkAgeNs) {
      if (ending) write_end();
      file.write_chunk();
      chunk_started_ns = now;
    }
    if (flushing && file.problem() == nullptr) {
      flush_done.store(wanted, std::memory_order_release);
      progress.wake();
    }
    if (ending) break;
    if (!more) work.wait(seen, kRoundNs);
  }
  accepting.store(false, std::memory_order_relaxed);
  if (file.problem() != nullptr) say_failed(file);
  file.close();
  finished.store(true, std::memory_order_release);
  progress.wake();
}

bool Writer::flush(uint32_t timeout_ms) noexcept {
  State* state = state_;
  if (state->process != ::getpid()) return false;
  const uint32_t ticket = state->flush_wanted.fetch_add(1, std::memory_order_acq_rel) + 1;
  const uint64_t deadline = now_ns() + timeout_ms * 1'000'000ull;
  state->work.wake();
  while (true) {
    const uint32_t seen = state->progress.seen();
    // The difference, so that the counter may wrap.
    if (static_cast<int32_t>(state->flush_done.load(std::memory_order_acquire) - ticket) >= 0) return true;
    if (state->finished.load(std::memory_order_acquire)) return false;
    const uint64_t now = now_ns();
    if (now >= deadline) return false;
    state->progress.wait(seen, deadline - now);
  }
}

void Writer::close() noexcept {
  State* state = state_;
  if (state->process != ::getpid()) {  // a fork child without abandon(): the writer thread is not here
    abandon();
    return;
  }
  state->accepting.store(false, std::memory_order_relaxed);
  const bool first = !state->closing.exchange(true, std::memory_order_acq_rel);
  state->work.wake();
  const uint64_t deadline = now_ns() + kCloseWaitNs;
  while (!state->finished.load(std::memory_order_acquire) && now_ns() < deadline) {
    const uint32_t seen = state->progress.seen();
    if (!state->finished.load(std::memory_order_acquire)) state->progress.wait(seen, kRoundNs);
  }
  if (first && state->finished.load(std::memory_order_acquire)) ::pthread_join(state->thread, nullptr);
}

void Writer::abandon() noexcept {
  State* state = state_;
  if (!state->accepting.exchange(false, std::memory_order_relaxed)) return;
  thread_state.owner = nullptr;
  thread_state.buffer = nullptr;
  if (have_thread_exit_key) ::pthread_setspecific(thread_exit_key, nullptr);
  state->file.forget();
}

uint64_t Writer::dropped() const noexcept { return state_->losses.dropped.load(std::memory_order_relaxed); }
uint64_t Writer::waits() const noexcept { return state_->losses.waits.load(std::memory_order_relaxed); }

}  // namespace reprise::trace

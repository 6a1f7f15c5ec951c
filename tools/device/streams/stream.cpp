#include "tools/device/streams/stream.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>

#include "tools/device/base/settings.h"
#include "tools/device/base/thread.h"
#include "tools/device/base/trap.h"
#include "tools/device/engines/activity.h"
#include "tools/device/engines/clock.h"
#include "tools/device/engines/host_time.h"

namespace reprise::sim {

struct Stream::Command {
  OperationPointer operation;
  std::vector<Wait> waits;
  uint64_t position = 0;
  uint64_t activity = 0;
  uint64_t call = 0;
  uint64_t issued_ns = 0;  // with the modelled clock alone
  Command* next = nullptr;
};

namespace {

std::atomic<uint32_t> next_stream_id{1};

// How long an idle stream thread looks for work before it sleeps, so that a burst of launches costs its caller no
// system call each.
constexpr uint64_t kSpinNs = 20'000;

// Of how many commands the modelled ends are kept: a power of two.
constexpr uint64_t kKeptEnds = 4096;

}  // namespace

StreamTable& streams() {
  static StreamTable& table = *new StreamTable;
  return table;
}

StreamProgress::StreamProgress() {
  if (modelled_clock()) ends_ns_ = std::make_unique<std::atomic<uint64_t>[]>(kKeptEnds);
}

void StreamProgress::await(uint64_t position) {
  if (reached(position)) return;
  const uint64_t until = now_ns() + kSpinNs / 2;
  while (now_ns() < until) {
    if (reached(position)) return;
    __builtin_ia32_pause();
  }
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return completed_.load(std::memory_order_seq_cst) >= position; });
  lock.unlock();
  waiters_.fetch_sub(1, std::memory_order_relaxed);
}

void StreamProgress::complete(uint64_t position) {
  completed_.store(position, std::memory_order_seq_cst);
  if (waiters_.load(std::memory_order_seq_cst) == 0) return;
  { const std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

uint64_t StreamProgress::ended_ns(uint64_t position) const {
  return ends_ns_[position % kKeptEnds].load(std::memory_order_relaxed);
}

void StreamProgress::set_ended(uint64_t position, uint64_t ns) {
  ends_ns_[position % kKeptEnds].store(ns, std::memory_order_relaxed);
}

Stream::Stream(Context& its_context, StreamKind its_kind, unsigned its_flags, int its_priority)
    : context(its_context), kind(its_kind), flags(its_flags), priority(its_priority), id(next_stream_id++) {}

// The legacy stream runs after all that blocking streams were given, and they after what it was given. All run after a
// copy between contexts that holds them back.
void Stream::add_order(std::vector<Wait>& waits) {
  const auto order_after = [&](const std::shared_ptr<Stream>& other) {
    const uint64_t position = other->submitted();
    if (!other->reached(position)) waits.push_back({other, position});
  };
  if (kind == StreamKind::legacy) {
    context.visit_streams([&](const std::shared_ptr<Stream>& other) {
      if (other->blocking()) order_after(other);
    });
  } else if (blocking()) {
    order_after(context.legacy());
  }
  uint64_t position = 0;
  if (std::shared_ptr<Stream> behind = context.held_back_by(&position); behind != nullptr && behind.get() != this) {
    waits.push_back({std::move(behind), position});
  }
}

uint64_t Stream::submit(OperationPointer operation, std::vector<Wait> waits) {
  add_order(waits);
  const uint64_t depth = settings().queue_depth;
  if (submitted() >= depth) wait_for(submitted() - depth + 1);
  Command* command = new Command;
  command->operation = std::move(operation);
  command->waits = std::move(waits);
  command->activity = current_activity();
  command->call = current_call();
  if (modelled_clock()) command->issued_ns = host_time_ns();
  bool wake;
  uint64_t position;
  {
    const std::lock_guard lock(queue_.mutex);
    if (!queue_.started) start();
    position = queue_.submitted.load(std::memory_order_relaxed) + 1;
    command->position = position;
    (queue_.tail == nullptr ? queue_.head : queue_.tail->next) = command;
    queue_.tail = command;
    queue_.submitted.store(position, std::memory_order_release);
    wake = queue_.sleeping;
  }
  if (wake) queue_.filled.notify_one();
  return position;
}

void Stream::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* self = new std::shared_ptr<Stream>(shared_from_this());
  pthread_t thread;
  if (pthread_create(&thread, nullptr, thread_main, self) == 0) {
    pthread_detach(thread);
    queue_.started = true;
  } else {
    delete self;
    context.fail(CUDA_ERROR_OPERATING_SYSTEM);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void* Stream::thread_main(void* argument) {
  auto* self = static_cast<std::shared_ptr<Stream>*>(argument);
  pthread_setname_np(pthread_self(), "sim-stream");
  install_trap();
  if (modelled_clock()) nap_precisely();
  (*self)->work();
  (*self)->context.forget_stream(self->get());
  delete self;
  return nullptr;
}

// All commands that wait, as a list; nullptr when the stream is closed and empty.
Stream::Command* Stream::next_batch() {
  const uint64_t done = progress_.completed();
  if (submitted() == done) {
    const uint64_t until = now_ns() + kSpinNs;
    while (submitted() == done && now_ns() < until) __builtin_ia32_pause();
  }
  std::unique_lock lock(queue_.mutex);
  queue_.sleeping = true;
  queue_.filled.wait(lock, [&] { return queue_.head != nullptr || queue_.closing; });
  queue_.sleeping = false;
  queue_.tail = nullptr;
  return std::exchange(queue_.head, nullptr);
}

void Stream::work() {
  while (Command* command = next_batch()) {
    while (command != nullptr) {
      perform(*command);
      const uint64_t position = command->position;
      delete std::exchange(command, command->next);
      progress_.complete(position);
    }
  }
}

void Stream::perform(Command& command) {
  for (const Wait& wait : command.waits) wait.stream->progress_.await(wait.position);
  if (modelled_clock()) {
    time_ns_ = std::max(time_ns_, command.issued_ns);
    for (const Wait& wait : command.waits) time_ns_ = std::max(time_ns_, wait.stream->ended_ns(wait.position));
  }
  if (!context.failed() || command.operation->runs_after_failure()) {
    command.operation->execute({*this, context, id, command.activity, command.call, time_ns_});
  }
  if (modelled_clock()) progress_.set_ended(command.position, time_ns_);
}

void Stream::wait_for(uint64_t position) {
  if (!modelled_clock()) return progress_.await(position);
  const uint64_t begun_ns = host_time_ns();
  progress_.await(position);
  host_waited(begun_ns, ended_ns(position));
}

void Stream::close() {
  bool never_started;
  {
    const std::lock_guard lock(queue_.mutex);
    queue_.closing = true;
    never_started = !queue_.started;
  }
  if (never_started) {
    context.forget_stream(this);
  } else {
    queue_.filled.notify_one();
  }
}

// Default streams of one thread, one per context it used.
struct ThreadStreams {
  std::vector<std::shared_ptr<Stream>> streams;
};

namespace {

pthread_key_t thread_end;

void close_thread_streams(void* argument) {
  auto* own = static_cast<ThreadStreams*>(argument);
  for (const std::shared_ptr<Stream>& stream : own->streams) stream->close();
  delete own;
  thread_state.streams = nullptr;
}

ThreadStreams& thread_streams() {
  static const bool keyed = pthread_key_create(&thread_end, close_thread_streams) == 0;
  if (thread_state.streams == nullptr) {
    thread_state.streams = new ThreadStreams;
    if (keyed) pthread_setspecific(thread_end, thread_state.streams);
  }
  return *thread_state.streams;
}

}  // namespace

std::shared_ptr<Stream> per_thread_stream(Context& context) {
  ThreadStreams& own = thread_streams();
  for (const std::shared_ptr<Stream>& stream : own.streams) {
    if (&stream->context == &context) return stream;
  }
  auto stream = std::make_shared<Stream>(context, StreamKind::per_thread, 0u, 0);
  stream->handle = CU_STREAM_PER_THREAD;
  context.add_stream(stream);
  own.streams.push_back(stream);
  return stream;
}

CUresult resolve_stream(Context& context, CUstream handle, std::shared_ptr<Stream>* stream) {
  if (handle == nullptr) handle = thread_state.per_thread_default ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY) {
    *stream = context.legacy();
    return CUDA_SUCCESS;
  }
  if (handle == CU_STREAM_PER_THREAD) {
    *stream = per_thread_stream(context);
    return CUDA_SUCCESS;
  }
  *stream = streams().share(handle);
  if (*stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return CUDA_SUCCESS;
}

PerThreadDefault::PerThreadDefault(const void* caller) : before_(thread_state.per_thread_default) {
  thread_state.per_thread_default = true;
  thread_state.per_thread_caller = caller;
}
PerThreadDefault::~PerThreadDefault() { thread_state.per_thread_default = before_; }

}  // namespace reprise::sim

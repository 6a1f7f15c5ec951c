// A stream: commands in order on a thread of its own. Cross-stream order is made of waits: (stream, position) pairs
// that a command has to see completed. A wait always names work submitted earlier, so there is no cycle. Callers:
// everything that submits work.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/device/base/handles.h"
#include "tools/device/base/operation.h"
#include "tools/device/streams/context.h"

namespace reprise::sim {

class Capture;

struct Wait {
  std::shared_ptr<Stream> stream;
  uint64_t position;
};

// How far a stream has got. Threads that wait for a position look for a while, then sleep.
class StreamProgress {
 public:
  StreamProgress();
  bool reached(uint64_t position) const { return completed_.load(std::memory_order_acquire) >= position; }
  void await(uint64_t position);
  // By the stream's own thread.
  uint64_t completed() const { return completed_.load(std::memory_order_relaxed); }
  void complete(uint64_t position);
  // With the modelled clock: when the command at this position ended; where that was long ago, when another one behind
  // it did.
  uint64_t ended_ns(uint64_t position) const;
  void set_ended(uint64_t position, uint64_t ns);

 private:
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint32_t> waiters_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<std::atomic<uint64_t>[]> ends_ns_;
};

enum class StreamKind : uint8_t { created, legacy, per_thread };

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Context& its_context, StreamKind its_kind, unsigned its_flags, int its_priority);

  Context& context;
  const StreamKind kind;
  const unsigned flags;
  const int priority;
  const uint32_t id;
  CUstream handle = nullptr;

  // Is its order tied to the legacy stream's?
  bool blocking() const { return kind != StreamKind::legacy && (flags & CU_STREAM_NON_BLOCKING) == 0; }

  // Queues work; blocks while the queue is full. Returns its position.
  uint64_t submit(OperationPointer operation, std::vector<Wait> waits = {});

  uint64_t submitted() const { return queue_.submitted.load(std::memory_order_acquire); }
  bool reached(uint64_t position) const { return progress_.reached(position); }
  // For threads of the program.
  void wait_for(uint64_t position);
  // With the modelled clock: when the command at this position, which is reached, ended.
  uint64_t ended_ns(uint64_t position) const { return progress_.ended_ns(position); }
  void drain() { wait_for(submitted()); }

  // The handle is gone: the thread ends after the last command.
  void close();

  // The capture that takes this stream's work, nullptr when it runs. Guarded by the capture lock (graphs/capture.cpp)
  // for writing.
  std::shared_ptr<Capture> capture;
  std::atomic<bool> capturing{false};

 private:
  struct Command;
  // Commands that wait for the stream's thread.
  struct CommandQueue {
    std::mutex mutex;
    std::condition_variable filled;
    Command* head = nullptr;
    Command* tail = nullptr;
    bool started = false;
    bool sleeping = false;
    bool closing = false;
    std::atomic<uint64_t> submitted{0};
  };

  void add_order(std::vector<Wait>& waits);
  void start();
  Command* next_batch();
  void work();
  void perform(Command& command);
  static void* thread_main(void* argument);

  CommandQueue queue_;
  StreamProgress progress_;
  uint64_t time_ns_ = 0;  // by the modelled clock, where that is on: how far its thread has got
};

using StreamTable = HandleTable<Stream, CUstream, HandleKind::stream>;
StreamTable& streams();

// What a CUstream argument means in the current call: NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included.
// CUDA_ERROR_INVALID_HANDLE for a bad one, CUDA_ERROR_INVALID_CONTEXT for one of another context.
CUresult resolve_stream(Context& context, CUstream handle, std::shared_ptr<Stream>* stream);

// The calling thread's own default stream.
std::shared_ptr<Stream> per_thread_stream(Context& context);

// While it lives, NULL streams in calls of this thread mean the per-thread one.
class PerThreadDefault {
 public:
  explicit PerThreadDefault(const void* caller);
  ~PerThreadDefault();

 private:
  bool before_;
};

}  // namespace reprise::sim

// Which streams have written to which allocation, while a program is recorded without its memory being managed: what a
// read-back has to wait for. Caller: the forwarder.
#pragma once
#include <cuda.h>
#include <pthread.h>

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "preload/calls/command.h"
#include "preload/calls/read_back.h"
#include "preload/landing/landing.h"

namespace reprise {

class WriterStreams {
 public:
  // The command is about to be submitted.
  void record(const Command& command) noexcept {
    if (!of_first(command)) record_other(command);
  }
  void forget(uint64_t allocation) noexcept;
  // Work on the stream, which is about to be destroyed, is waited for by every later read.
  void stream_ends(CUstream stream) noexcept;
  bool read_back(const ReadBack& request) noexcept;

 private:
  // Streams by the context that they are of: the default streams are one per context.
  struct Stream {
    CUcontext context;
    CUstream stream;
    pthread_t thread;  // of the per-thread stream, which no other thread can name; else 0
    bool operator==(const Stream&) const = default;
  };
  static Stream named(CUcontext context, CUstream stream) noexcept;
  // Surely on the first stream of all?
  bool of_first(const Command& command) const noexcept {
    return first_known_.load(std::memory_order_acquire) && !first_ended_.load(std::memory_order_relaxed) &&
           command.stream == first_.stream && command.context == first_.context && first_.thread == pthread_t{};
  }
  void record_other(const Command& command) noexcept;
  std::vector<Stream> streams_for(const ReadBack& request) noexcept;
  bool start(const ReadBack& request, CUcontext context) noexcept;

  // The first stream of all is waited for by every read, so that a program with one stream pays nothing here.
  Stream first_{};
  std::atomic<bool> first_known_{false};
  std::atomic<bool> first_ended_{false};  // its handle may mean another stream by now
  std::mutex mutex_;
  std::map<uint64_t, std::vector<Stream>> writers_;  // by allocation: of the other streams
  std::vector<Stream> all_;                          // that anything was submitted to
  CUcontext context_ = nullptr;                      // of the landing
  Landing landing_{ReadBack::kMostBytes};
};

}  // namespace reprise

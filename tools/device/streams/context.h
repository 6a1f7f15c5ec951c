// A context: the streams of one device that share fate. After a failed kernel every later call on it returns that
// error; where cuda.h says that it ends the process, calls on all contexts do, and none is made any more. Callers:
// enter.h, streams, memory. Context objects live as long as the process, so a stale pointer can always be asked.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/handles.h"

namespace reprise::sim {

class Device;
class Stream;

class Context {
 public:
  Context(Device& its_device, uint64_t its_id, unsigned its_flags, bool is_primary);

  Device& device;
  const uint64_t id;
  const bool primary;
  CUcontext handle = nullptr;
  std::atomic<unsigned> flags;

  // What calls on it answer: CUDA_SUCCESS, the sticky error, its own or the process's, or
  // CUDA_ERROR_CONTEXT_IS_DESTROYED.
  CUresult status() const noexcept {
    const int own = status_.load(std::memory_order_relaxed);
    return own == CUDA_SUCCESS ? process_status() : static_cast<CUresult>(own);
  }
  // CUDA_SUCCESS, or the first error of any context that ended the process.
  static CUresult process_status() noexcept {
    return static_cast<CUresult>(process_status_.load(std::memory_order_relaxed));
  }
  // The first failure stays.
  void fail(CUresult error) noexcept;
  // Of its own work: what it still has to do is dropped then. That of other contexts goes on.
  bool failed() const noexcept { return status_.load(std::memory_order_relaxed) != CUDA_SUCCESS; }

  std::shared_ptr<Stream> legacy();
  // Streams that have a handle or work: streams() and visit_streams().
  void add_stream(std::shared_ptr<Stream> stream);
  void forget_stream(const Stream* stream);
  std::vector<std::shared_ptr<Stream>> streams();
  // Calls visit(stream) for each, under the list's lock: it must be short.
  template <typename Visit>
  void visit_streams(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Stream>& stream : streams_) visit(stream);
  }

  // Work of any context that all streams of this one wait for from now on, until it is done: cuMemcpyPeer's.
  void hold_back(std::shared_ptr<Stream> behind, uint64_t position);
  // nullptr: there is none, or it is done.
  std::shared_ptr<Stream> held_back_by(uint64_t* position);

  // Waits for all work that was submitted before.
  void drain();

  // A primary context comes to life again when it is retained anew.
  void revive() noexcept;
  // Waits, then releases its streams and events; its caller, tear_down() of context_api.cpp, then releases modules and
  // memory.
  void close();

  size_t limits[CU_LIMIT_MAX] = {};
  std::atomic<int> cache_config{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<uint64_t> peers{0};  // devices whose memory the context may access, a bit each; set under device.mutex

 private:
  struct HeldBack {
    std::atomic<bool> any{false};
    std::shared_ptr<Stream> behind;
    uint64_t position = 0;
  };

  static std::atomic<int> process_status_;
  std::atomic<int> status_{CUDA_SUCCESS};
  std::mutex mutex_;
  std::shared_ptr<Stream> legacy_;
  std::vector<std::shared_ptr<Stream>> streams_;
  HeldBack held_back_;
};

using ContextTable = HandleTable<Context, CUcontext, HandleKind::context>;
ContextTable& contexts();

// The context that `handle` names: nullptr when it names none. Handles of destroyed contexts name none.
Context* find_context(CUcontext handle);

// What a limit is in a new context.
size_t default_limit(int limit) noexcept;

// Makes a context; nullptr when the device's memory does not hold its overhead.
Context* create_context(Device& device, unsigned flags, bool primary);
// The primary context, made or revived with a reference taken; nullptr as above.
Context* retain_primary(Device& device);
// Waits for all contexts of a device.
void drain_device(Device& device);

}  // namespace reprise::sim

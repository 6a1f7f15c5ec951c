// The streams that stand for CU_STREAM_PER_THREAD: one a thread and context. The driver's own belongs to the thread
// that calls the driver, which is the dispatcher for all program threads. Caller: the enforcer, on program threads.
#pragma once
#include <cuda.h>
#include <pthread.h>

#include <mutex>
#include <vector>

namespace reprise::replay {

class PerThreadStreams {
 public:
  // Called for each stream of a thread that ends.
  using Ended = void (*)(void* user, CUcontext context, CUstream stream) noexcept;
  PerThreadStreams(Ended ended, void* user) noexcept;

  // In the current context; made when it is needed first. CU_STREAM_PER_THREAD where the driver gives none.
  CUstream of_this_thread() noexcept;
  // The thread is about to work on the driver's own stream: what it calls next comes after that.
  void driver_works() noexcept;
  // The context is gone, and its streams with it.
  void forget(CUcontext context) noexcept;

 private:
  struct StandIn {
    CUcontext context;
    CUstream stream;
  };
  struct Thread {
    PerThreadStreams* owner;
    std::vector<StandIn> streams;
    bool driver_works = false;
  };
  Thread& thread() noexcept;
  static void thread_ends(void* thread) noexcept;

  const Ended ended_;
  void* const user_;
  pthread_key_t key_ = 0;
  std::mutex mutex_;
  std::vector<Thread*> threads_;
};

}  // namespace reprise::replay

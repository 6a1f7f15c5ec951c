#include "replay/enforcer/per_thread.h"

#include <algorithm>

#include "preload/driver/driver.h"

namespace reprise::replay {

PerThreadStreams::PerThreadStreams(Ended ended, void* user) noexcept : ended_(ended), user_(user) {
  pthread_key_create(&key_, &PerThreadStreams::thread_ends);
}

// Under the lock: forget() looks at the streams of all threads.
PerThreadStreams::Thread& PerThreadStreams::thread() noexcept {
  auto* own = static_cast<Thread*>(pthread_getspecific(key_));
  if (own == nullptr) {
    own = new Thread{this, {}};
    threads_.push_back(own);
    pthread_setspecific(key_, own);
  }
  return *own;
}

CUstream PerThreadStreams::of_this_thread() noexcept {
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  const std::lock_guard lock(mutex_);
  Thread& own = thread();
  if (own.driver_works && driver().cuStreamSynchronize(CU_STREAM_PER_THREAD) == CUDA_SUCCESS) own.driver_works = false;
  for (const StandIn& known : own.streams) {
    if (known.context == context) return known.stream;
  }
  // An ordinary stream: like the per-thread one it waits for the legacy stream and the other way round.
  CUstream created = nullptr;
  if (driver().cuStreamCreate(&created, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return CU_STREAM_PER_THREAD;
  own.streams.push_back({context, created});
  return created;
}

void PerThreadStreams::driver_works() noexcept {
  const std::lock_guard lock(mutex_);
  thread().driver_works = true;
}

void PerThreadStreams::forget(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  for (Thread* const thread : threads_) {
    std::erase_if(thread->streams, [context](const StandIn& stream) { return stream.context == context; });
  }
}

void PerThreadStreams::thread_ends(void* thread) noexcept {
  auto* const own = static_cast<Thread*>(thread);
  PerThreadStreams& all = *own->owner;
  std::vector<StandIn> streams;
  {
    const std::lock_guard lock(all.mutex_);
    std::erase(all.threads_, own);
    streams = std::move(own->streams);
    delete own;
  }
  for (const StandIn& stream : streams) all.ended_(all.user_, stream.context, stream.stream);
}

}  // namespace reprise::replay

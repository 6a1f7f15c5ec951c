// The enforcer's answers about order: events, streams, synchronisation, captures, ordered calls.
#include "preload/driver/driver.h"
#include "replay/enforcer/enforcer.h"

namespace reprise::replay {

CUstream stream_of_program(CUstream stream) noexcept {
  if (stream != CU_STREAM_PER_THREAD) return stream;
  struct Own {
    CUcontext context;
    CUstream stream;
  };
  static thread_local Own own{};
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  if (own.stream != nullptr && own.context == context) return own.stream;
  // An ordinary stream: like the per-thread one it waits for the legacy stream and the other way round.
  CUstream created = nullptr;
  if (driver().cuStreamCreate(&created, CU_STREAM_DEFAULT) != CUDA_SUCCESS) return stream;
  own = {context, created};
  return created;
}

// Returns when all calls made so far are with the driver.
void Enforcer::drain() noexcept {
  const uint64_t tail = shared_.command_log.tail();
  if (tail > 0) shared_.command_log.wait_done(tail - 1);
}

CUresult Enforcer::append_order(EntryKind kind, CUevent event, CUstream stream, unsigned flags) noexcept {
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  const CUstream own = stream_of_program(stream);
  const std::lock_guard lock(submit_mutex_);
  LogEntry* const entry = shared_.command_log.append(kind);
  entry->command.context = context;
  entry->command.stream = own;
  entry->event = event;
  entry->flags = flags;
  if (kind == EntryKind::event_record) shared_.events.deferred(event, Events::Role::record);
  if (kind == EntryKind::event_wait) shared_.events.deferred(event, Events::Role::wait);
  shared_.command_log.publish(entry);
  return CUDA_SUCCESS;
}

CUresult Enforcer::event_record(CUevent event, CUstream stream, unsigned flags) noexcept {
  if (!managing() || event == nullptr) {
    return flags == 0 ? driver().cuEventRecord(event, stream) : driver().cuEventRecordWithFlags(event, stream, flags);
  }
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  return append_order(EntryKind::event_record, event, stream, flags);
}

CUresult Enforcer::event_query(CUevent event) noexcept {
  if (!managing()) return driver().cuEventQuery(event);
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  if (shared_.events.record_pending(event)) {
    shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = driver().cuEventQuery(event);
  const CUresult fault = shared_.faults.take();  // work before the event may have been lost since the first look
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Enforcer::event_synchronize(CUevent event) noexcept {
  if (!managing()) return driver().cuEventSynchronize(event);
  if (shared_.events.record_pending(event)) drain();
  const CUresult result = driver().cuEventSynchronize(event);
  collect_activity();
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Enforcer::event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept {
  if (managing() && (shared_.events.record_pending(start) || shared_.events.record_pending(end))) {
    shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_NOT_READY;
  }
  return driver().cuEventElapsedTime(milliseconds, start, end);
}

CUresult Enforcer::event_destroy(CUevent event) noexcept {
  if (managing() && shared_.events.destroy_later(event)) return CUDA_SUCCESS;
  return driver().cuEventDestroy(event);
}

CUresult Enforcer::stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept {
  if (!managing() || event == nullptr) return driver().cuStreamWaitEvent(stream, event, flags);
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  return append_order(EntryKind::event_wait, event, stream, flags);
}

CUresult Enforcer::stream_query(CUstream stream) noexcept {
  if (!managing()) return driver().cuStreamQuery(stream);
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  if (deferred()) {
    shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = driver().cuStreamQuery(stream_of_program(stream));
  const CUresult fault = shared_.faults.take();
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Enforcer::stream_synchronize(CUstream stream) noexcept {
  if (!managing()) return driver().cuStreamSynchronize(stream);
  drain();
  const CUresult result = driver().cuStreamSynchronize(stream_of_program(stream));
  collect_activity();
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Enforcer::stream_destroy(CUstream stream) noexcept {
  // The default streams cannot be destroyed: the driver refuses.
  if (!managing() || stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
    return driver().cuStreamDestroy(stream);
  }
  return append_order(EntryKind::stream_destroy, nullptr, stream, 0);
}

CUresult Enforcer::context_synchronize() noexcept {
  if (!managing()) return driver().cuCtxSynchronize();
  const uint64_t tail = shared_.command_log.tail();
  drain();
  const CUresult result = driver().cuCtxSynchronize();
  if (result == CUDA_SUCCESS) {
    uint64_t known = synchronized_.load();
    while (known < tail && !synchronized_.compare_exchange_weak(known, tail)) {
    }
  }
  collect_activity();
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Enforcer::before_ordered(const char* name, bool all_resident) noexcept {
  if (!managing()) return CUDA_SUCCESS;
  if (!all_resident && !deferred()) return CUDA_SUCCESS;
  Waiter& waiter = Waiter::of_this_thread();
  {
    const std::lock_guard lock(submit_mutex_);
    if (all_resident) follower_.interrupt(name);
    LogEntry* const entry = shared_.command_log.append(EntryKind::ordered);
    entry->all_resident = all_resident;
    entry->command.name = name;
    waiter.arm();
    entry->waiter = &waiter;
    shared_.command_log.publish(entry);
  }
  shared_.command_log.enter_blocked();
  waiter.wait();
  shared_.command_log.leave_blocked();
  return waiter.result();
}

void Enforcer::capture_begin() noexcept {
  captures_.fetch_add(1);
  if (!managing()) return;
  const std::lock_guard lock(submit_mutex_);
  follower_.interrupt("a stream capture");
}

void Enforcer::capture_end() noexcept { captures_.fetch_sub(1); }

}  // namespace reprise::replay

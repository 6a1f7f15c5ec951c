#include "replay/session/orders.h"

#include "preload/driver/driver.h"

namespace reprise::replay {

void Orders::drain() noexcept {
  const uint64_t tail = shared_.command_log.tail();
  if (tail > 0) shared_.command_log.wait_settled(tail - 1);
}

CUresult Orders::append(EntryKind kind, CUevent event, CUstream stream, unsigned flags) noexcept {
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  const std::lock_guard lock(shared_.submit_mutex);
  LogEntry* const entry = shared_.command_log.append(kind);
  entry->command.context = context;
  entry->command.stream = stream;
  entry->event = event;
  entry->flags = flags;
  if (kind == EntryKind::event_record) shared_.events.deferred(event, Events::Role::record);
  if (kind == EntryKind::event_wait) shared_.events.deferred(event, Events::Role::wait);
  shared_.command_log.publish(entry);
  return CUDA_SUCCESS;
}

CUresult Orders::seen(CUresult result) noexcept {
  if (__builtin_expect(is_sticky(result), false)) {
    shared_.faults.report(result);
    shared_.faults.answer();
    shared_.command_log.wake();
  }
  return result;
}

CUresult Orders::event_record(CUevent event, CUstream stream, unsigned flags) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  return append(EntryKind::event_record, event, stream, flags);
}

CUresult Orders::event_query(CUevent event) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  if (shared_.events.record_pending(event)) {
    shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = seen(driver().cuEventQuery(event));
  const CUresult fault = shared_.faults.take();  // work before the event may have been lost since the first look
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Orders::event_synchronize(CUevent event) noexcept {
  if (shared_.events.record_pending(event)) drain();
  const CUresult result = seen(driver().cuEventSynchronize(event));
  collect_activity(recorder_, shared_.common);
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

// The driver does not know yet that a deferred event is recorded. It says whether the other one is.
CUresult Orders::event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept {
  const bool start_waits = shared_.events.record_pending(start);
  const bool end_waits = shared_.events.record_pending(end);
  if (!start_waits && !end_waits) return driver().cuEventElapsedTime(milliseconds, start, end);
  shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
  if (start_waits && end_waits) return CUDA_ERROR_NOT_READY;
  const CUevent other = start_waits ? end : start;
  float nothing = 0;
  const CUresult result = driver().cuEventElapsedTime(&nothing, other, other);
  return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : result;
}

CUresult Orders::event_destroy(CUevent event) noexcept {
  return shared_.events.destroy_later(event) ? CUDA_SUCCESS : driver().cuEventDestroy(event);
}

CUresult Orders::stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  return append(EntryKind::event_wait, event, stream, flags);
}

CUresult Orders::stream_query(CUstream stream) noexcept {
  if (const CUresult fault = shared_.faults.take(); fault != CUDA_SUCCESS) return fault;
  if (deferred()) {
    shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
    return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = seen(driver().cuStreamQuery(stream));
  const CUresult fault = shared_.faults.take();
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Orders::stream_synchronize(CUstream stream) noexcept {
  drain();
  const CUresult result = seen(driver().cuStreamSynchronize(stream));
  collect_activity(recorder_, shared_.common);
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Orders::stream_destroy(CUstream stream) noexcept {
  return append(EntryKind::stream_destroy, nullptr, stream, 0);
}

void Orders::stream_of_ended_thread(CUcontext context, CUstream stream) noexcept {
  const std::lock_guard lock(shared_.submit_mutex);
  LogEntry* const entry = shared_.command_log.append(EntryKind::stream_destroy);
  entry->command.context = context;
  entry->command.stream = stream;
  shared_.command_log.publish(entry);
}

// Returns when the calls before `position` of the log are complete, those of the current context at least.
CUresult Orders::synchronize_behind(uint64_t position) noexcept {
  if (position > 0) shared_.command_log.wait_settled(position - 1);
  const CUresult result = seen(driver().cuCtxSynchronize());
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  if (result == CUDA_SUCCESS && context == shared_.context) {  // of another context it says nothing about ours
    uint64_t known = synchronized_.load();
    while (known < position && !synchronized_.compare_exchange_weak(known, position)) {
    }
  }
  collect_activity(recorder_, shared_.common);
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Orders::before_free() noexcept {
  const uint64_t visible = host_visible_.load();
  if (visible <= synchronized_.load()) return CUDA_SUCCESS;
  // To wait for the context would end an open capture.
  return shared_.common.captures.load() > 0 ? run_errand(Errand::synchronize, "a free") : synchronize_behind(visible);
}

CUresult Orders::before_ordered(const char* name, bool all_resident) noexcept {
  if (!all_resident && !deferred()) return CUDA_SUCCESS;
  return ask_dispatcher(EntryKind::ordered, [&](LogEntry& entry) {
    if (all_resident) plans_.follower().interrupt(name);
    entry.all_resident = all_resident;
    entry.command.name = name;
  });
}

CUresult Orders::run_errand(Errand errand, const char* why, CUcontext context, uint64_t bytes) noexcept {
  return ask_dispatcher(EntryKind::errand, [&](LogEntry& entry) {
    plans_.follower().interrupt(why);
    entry.errand = errand;
    entry.size = bytes;
    entry.command.context = context;
    entry.command.name = why;
  });
}

}  // namespace reprise::replay

// The enforcer's answers about order: events, streams, synchronisation, captures, ordered calls.
#include "preload/base/causes.h"
#include "preload/driver/driver.h"
#include "replay/enforcer/enforcer.h"

namespace reprise::replay {
namespace {
constexpr const char* kShortOfMemory = phrase<Cause::driver_is_short>();
}

// Returns when all calls made so far are with the driver.
void Enforcer::drain() noexcept {
  const uint64_t tail = shared_.command_log.tail();
  if (tail > 0) shared_.command_log.wait_settled(tail - 1);
}

CUresult Enforcer::append_order(EntryKind kind, CUevent event, CUstream stream, unsigned flags) noexcept {
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  const CUstream own = stand_in(stream);
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

// An answer of the driver. That the device has failed is told in one line by the dispatcher, and by every later call.
CUresult Enforcer::seen(CUresult result) noexcept {
  if (__builtin_expect(is_sticky(result), false)) {
    shared_.faults.report(result);
    shared_.faults.answer();
    shared_.command_log.wake();
  }
  return result;
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
  const CUresult result = seen(driver().cuEventQuery(event));
  const CUresult fault = shared_.faults.take();  // work before the event may have been lost since the first look
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Enforcer::event_synchronize(CUevent event) noexcept {
  if (!managing()) return driver().cuEventSynchronize(event);
  if (shared_.events.record_pending(event)) drain();
  const CUresult result = seen(driver().cuEventSynchronize(event));
  collect_activity(recorder_, shared_);
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

// Of an event that is put off the driver does not know yet that it is recorded; whether the other one is, it says.
CUresult Enforcer::event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept {
  const bool start_waits = managing() && shared_.events.record_pending(start);
  const bool end_waits = managing() && shared_.events.record_pending(end);
  if (!start_waits && !end_waits) return driver().cuEventElapsedTime(milliseconds, start, end);
  shared_.counters.polls.fetch_add(1, std::memory_order_relaxed);
  if (start_waits && end_waits) return CUDA_ERROR_NOT_READY;
  const CUevent other = start_waits ? end : start;
  float nothing = 0;
  const CUresult result = driver().cuEventElapsedTime(&nothing, other, other);
  return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : result;
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
  const CUresult result = seen(driver().cuStreamQuery(stand_in(stream)));
  const CUresult fault = shared_.faults.take();
  return fault != CUDA_SUCCESS ? fault : result;
}

CUresult Enforcer::stream_synchronize(CUstream stream) noexcept {
  if (!managing()) return driver().cuStreamSynchronize(stream);
  drain();
  const CUresult result = seen(driver().cuStreamSynchronize(stand_in(stream)));
  collect_activity(recorder_, shared_);
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
  return synchronize_behind(shared_.command_log.tail());
}

// Returns when the calls before `position` of the log are complete, those of the current context at least.
CUresult Enforcer::synchronize_behind(uint64_t position) noexcept {
  if (position > 0) shared_.command_log.wait_settled(position - 1);
  const CUresult result = seen(driver().cuCtxSynchronize());
  CUcontext context = nullptr;
  driver().cuCtxGetCurrent(&context);
  if (result == CUDA_SUCCESS && context == shared_.context) {  // of another context it says nothing about ours
    uint64_t known = synchronized_.load();
    while (known < position && !synchronized_.compare_exchange_weak(known, position)) {
    }
  }
  collect_activity(recorder_, shared_);
  const CUresult fault = shared_.faults.take();
  return result != CUDA_SUCCESS ? result : fault;
}

CUresult Enforcer::before_ordered(const char* name, bool all_resident) noexcept {
  if (!managing()) return CUDA_SUCCESS;
  if (!all_resident && !deferred()) return CUDA_SUCCESS;
  return ask_dispatcher(EntryKind::ordered, [&](LogEntry& entry) {
    if (all_resident) follower().interrupt(name);
    entry.all_resident = all_resident;
    entry.command.name = name;
  });
}

CUstream Enforcer::stand_in(CUstream stream) noexcept {
  return stream == CU_STREAM_PER_THREAD && managing() ? per_thread_.of_this_thread() : stream;
}

void Enforcer::before_per_thread_call() noexcept {
  if (!managing()) return;
  stream_synchronize(CU_STREAM_PER_THREAD);
  per_thread_.driver_works();
}

// A thread has ended: what it submitted may still wait in the log.
void Enforcer::destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept {
  auto& enforcer = *static_cast<Enforcer*>(self);
  if (!enforcer.managing()) return;
  const std::lock_guard lock(enforcer.submit_mutex_);
  LogEntry* const entry = enforcer.shared_.command_log.append(EntryKind::stream_destroy);
  entry->command.context = context;
  entry->command.stream = stream;
  enforcer.shared_.command_log.publish(entry);
}

CUresult Enforcer::run_errand(Errand errand, const char* why, CUcontext context, uint64_t bytes) noexcept {
  return ask_dispatcher(EntryKind::errand, [&](LogEntry& entry) {
    follower().interrupt(why);
    entry.errand = errand;
    entry.size = bytes;
    entry.command.context = context;
    entry.command.name = why;
  });
}

bool Enforcer::make_headroom(uint64_t bytes) noexcept {
  if (!managing()) return false;
  return run_errand(Errand::headroom, kShortOfMemory, nullptr, bytes) == CUDA_SUCCESS;
}

bool Enforcer::make_more_headroom(int refusal) noexcept {
  if (!managing() || shared_.captures.load() > 0) return false;
  const auto count = static_cast<uint64_t>(refusal);
  return run_errand(Errand::more_headroom, kShortOfMemory, nullptr, count) == CUDA_SUCCESS;
}

CUresult Enforcer::peer_allowed(CUdevice device, CUdevice peer) noexcept {
  const bool known = device >= 0 && peer >= 0 && peer < 64 && static_cast<size_t>(device) < shared_.peers.size();
  if (!known || device == peer) return CUDA_SUCCESS;
  std::atomic<uint64_t>& peers = shared_.peers[static_cast<size_t>(device)];
  const uint64_t before = peers.fetch_or(uint64_t{1} << peer);
  const uint64_t after = before | uint64_t{1} << peer;
  if (after == before || !managing() || device != shared_.device) return CUDA_SUCCESS;
  return run_errand(Errand::allow_peers, phrase<Cause::one_more_device>(), nullptr, after);
}

CUresult Enforcer::capture_begin() noexcept {
  shared_.captures.fetch_add(1);
  return before_joining_capture();
}

CUresult Enforcer::before_joining_capture() noexcept {
  return managing() ? run_errand(Errand::mark_lanes, phrase<Cause::a_capture>()) : CUDA_SUCCESS;
}

void Enforcer::capture_end() noexcept { shared_.captures.fetch_sub(1); }

}  // namespace reprise::replay

#include "replay/enforcer/enforced_order.h"

#include "preload/base/causes.h"
#include "preload/driver/driver.h"

namespace reprise::replay {

CUresult EnforcedOrder::submit(const Command& command) noexcept {
  if (Session* const session = sessions_.now()) return session->submit(command, stand_in(command.stream));
  if (may_wait_for_program(command.op)) common_.launched.store(true, std::memory_order_relaxed);
  return command.issue(command.payload, command.stream);
}

CUresult EnforcedOrder::event_record(CUevent event, CUstream stream, unsigned flags) noexcept {
  Session* const session = sessions_.now();
  if (session != nullptr && event != nullptr) return session->orders().event_record(event, stand_in(stream), flags);
  return flags == 0 ? driver().cuEventRecord(event, stream) : driver().cuEventRecordWithFlags(event, stream, flags);
}

CUresult EnforcedOrder::event_query(CUevent event) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().event_query(event) : driver().cuEventQuery(event);
}

CUresult EnforcedOrder::event_synchronize(CUevent event) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().event_synchronize(event) : driver().cuEventSynchronize(event);
}

CUresult EnforcedOrder::event_elapsed(float* milliseconds, CUevent start, CUevent end) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().event_elapsed(milliseconds, start, end)
                            : driver().cuEventElapsedTime(milliseconds, start, end);
}

CUresult EnforcedOrder::event_destroy(CUevent event) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().event_destroy(event) : driver().cuEventDestroy(event);
}

CUresult EnforcedOrder::stream_wait_event(CUstream stream, CUevent event, unsigned flags) noexcept {
  Session* const session = sessions_.now();
  if (session == nullptr || event == nullptr) return driver().cuStreamWaitEvent(stream, event, flags);
  return session->orders().stream_wait_event(stand_in(stream), event, flags);
}

CUresult EnforcedOrder::stream_query(CUstream stream) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().stream_query(stand_in(stream)) : driver().cuStreamQuery(stream);
}

CUresult EnforcedOrder::stream_synchronize(CUstream stream) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().stream_synchronize(stand_in(stream))
                            : driver().cuStreamSynchronize(stream);
}

CUresult EnforcedOrder::stream_destroy(CUstream stream) noexcept {
  Session* const session = sessions_.now();
  // The default streams cannot be destroyed: the driver refuses.
  const bool is_default = stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
  return session == nullptr || is_default ? driver().cuStreamDestroy(stream) : session->orders().stream_destroy(stream);
}

CUresult EnforcedOrder::context_synchronize() noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().context_synchronize() : driver().cuCtxSynchronize();
}

CUresult EnforcedOrder::before_ordered(const char* name, bool all_resident) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().before_ordered(name, all_resident) : CUDA_SUCCESS;
}

CUstream EnforcedOrder::stand_in(CUstream stream) noexcept {
  return stream == CU_STREAM_PER_THREAD && sessions_.state() == Sessions::State::open ? per_thread_.of_this_thread()
                                                                                      : stream;
}

void EnforcedOrder::before_per_thread_call() noexcept {
  if (sessions_.state() != Sessions::State::open) return;
  stream_synchronize(CU_STREAM_PER_THREAD);
  per_thread_.driver_works();
}

void EnforcedOrder::destroy_stand_in(void* self, CUcontext context, CUstream stream) noexcept {
  Session* const session = static_cast<EnforcedOrder*>(self)->sessions_.now();
  if (session != nullptr) session->orders().stream_of_ended_thread(context, stream);
}

CUresult EnforcedOrder::capture_begin() noexcept {
  common_.captures.fetch_add(1);
  return before_joining_capture();
}

CUresult EnforcedOrder::before_joining_capture() noexcept {
  Session* const session = sessions_.now();
  return session != nullptr ? session->orders().run_errand(Errand::mark_lanes, phrase<Cause::a_capture>())
                            : CUDA_SUCCESS;
}

bool EnforcedOrder::reads_back() const noexcept {
  Session* const session = sessions_.now();
  return session != nullptr && session->reads_back();
}

bool EnforcedOrder::read_back(const ReadBack& request) noexcept {
  Session* const session = sessions_.now();
  return session != nullptr && session->read_back(request);
}

}  // namespace reprise::replay

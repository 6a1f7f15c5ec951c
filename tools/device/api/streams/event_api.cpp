// cuEventCreate and its kin.
#include "tools/device/engines/clock.h"
#include "tools/device/engines/host_time.h"
#include "tools/device/memory/pool.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/dispatch.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/event.h"

using namespace reprise::sim;

namespace {

CUresult record(Context& context, CUevent handle, CUstream stream_handle, unsigned flags) {
  SIM_REQUIRE((flags & ~unsigned{CU_EVENT_RECORD_EXTERNAL}) == 0, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Event> event = events().share(handle);
  SIM_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_work_stream(context, stream_handle, &stream));
  SIM_REQUIRE(&stream->context == &event->context, CUDA_ERROR_INVALID_HANDLE);
  if (stream->capturing.load(std::memory_order_relaxed)) return capture_record(stream, event, handle, flags);
  record_event(*event, stream);
  return CUDA_SUCCESS;
}

bool reached(const EventPoint& point) { return point.stream->reached(point.position); }

// With the resolution of half a microsecond that a device has.
float elapsed(const EventPoint& start, const EventPoint& end) {
  const auto from = static_cast<double>(start.time_ns.load(std::memory_order_acquire));
  const auto to = static_cast<double>(end.time_ns.load(std::memory_order_acquire));
  return static_cast<float>((to - from) / 1e6);
}

}  // namespace

extern "C" {

CUresult cuEventCreate(CUevent* phEvent, unsigned int Flags) {
  SIM_ENTER_CONTEXT(context);
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  SIM_REQUIRE(phEvent != nullptr && (Flags & ~kKnown) == 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE((Flags & CU_EVENT_INTERPROCESS) == 0 || (Flags & CU_EVENT_DISABLE_TIMING) != 0, CUDA_ERROR_INVALID_VALUE);
  *phEvent = events().add(std::make_shared<Event>(*context, Flags));
  return *phEvent == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent hEvent) {
  SIM_ENTER_CONTEXT(context);
  return events().remove(hEvent) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent hEvent) { return cuEventDestroy_v2(hEvent); }

CUresult cuEventRecord(CUevent hEvent, CUstream hStream) {
  SIM_ENTER_CONTEXT(context);
  return record(*context, hEvent, hStream, 0);
}

CUresult cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  return record(*context, hEvent, hStream, flags);
}

CUresult cuEventQuery(CUevent hEvent) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Event> event = events().share(hEvent);
  SIM_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_TRY(refuse_captured(*event));
  const std::shared_ptr<EventPoint> point = event->point();
  if (point == nullptr) return CUDA_SUCCESS;
  if (!reached(*point)) return CUDA_ERROR_NOT_READY;
  if (modelled_clock()) host_saw(point->time_ns.load(std::memory_order_acquire));
  return event->context.status();
}

CUresult cuEventSynchronize(CUevent hEvent) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Event> event = events().share(hEvent);
  SIM_REQUIRE(event != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_TRY(refuse_captured(*event));
  const std::shared_ptr<EventPoint> point = event->point();
  if (point == nullptr) return CUDA_SUCCESS;
  point->stream->wait_for(point->position);
  trim_pools(event->context.device);
  return event->context.status();
}

CUresult cuEventElapsedTime_v2(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Event> start = events().share(hStart);
  const std::shared_ptr<Event> end = events().share(hEnd);
  SIM_REQUIRE(pMilliseconds != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(start != nullptr && end != nullptr && start->timed() && end->timed(), CUDA_ERROR_INVALID_HANDLE);
  const std::shared_ptr<EventPoint> from = start->point();
  const std::shared_ptr<EventPoint> to = end->point();
  SIM_REQUIRE(from != nullptr && to != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_REQUIRE(reached(*from) && reached(*to), CUDA_ERROR_NOT_READY);
  *pMilliseconds = elapsed(*from, *to);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* pMilliseconds, CUevent hStart, CUevent hEnd) {
  return cuEventElapsedTime_v2(pMilliseconds, hStart, hEnd);
}

}  // extern "C"

// Events: recording, asking, waiting, destroying.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/base/sequence.h"
#include "preload/calls/handler.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/record/recorder.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

void record_order(trace::OrderKind kind, uint32_t stream, CUevent event) {
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    recorder->order(kind, stream, reinterpret_cast<uint64_t>(event), next_sequence());
  }
}

CUresult record(CUevent event, CUstream stream, unsigned flags) {
  const HookScope scope;
  const bool captured = scope && capturing(stream);
  if (scope) event_recorded(event, captured && (flags & CU_EVENT_RECORD_EXTERNAL) == 0);
  // A record before this one may still be deferred. Flags are for captures alone: elsewhere the driver refuses them.
  const bool at_once = captured || (scope && flags != 0);
  if (at_once) {
    if (const CUresult order = before_ordered(RowId::k_cuEventRecord); order != CUDA_SUCCESS) return order;
  }
  if (!scope || at_once) {
    return flags == 0 ? driver().cuEventRecord(event, stream) : driver().cuEventRecordWithFlags(event, stream, flags);
  }
  record_order(trace::OrderKind::event_record, stream_id(stream), event);
  return runtime().handler->order.event_record(event, stream, flags);
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  const HookScope scope;
  return scope ? runtime().handler->order.event_elapsed(milliseconds, start, end)
               : driver().cuEventElapsedTime(milliseconds, start, end);
}

CUresult destroy(CUevent event) {
  const HookScope scope;
  if (scope) event_recorded(event, false);
  return scope ? runtime().handler->order.event_destroy(event) : driver().cuEventDestroy(event);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  return record(event, explicit_stream(stream, kLegacy), 0);
}
REPRISE_EXPORT CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return record(event, explicit_stream(stream, kPerThread), 0);
}
REPRISE_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return record(event, explicit_stream(stream, kLegacy), flags);
}
REPRISE_EXPORT CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return record(event, explicit_stream(stream, kPerThread), flags);
}

REPRISE_EXPORT CUresult cuEventQuery(CUevent event) {
  const HookScope scope;
  if (!scope) return driver().cuEventQuery(event);
  record_order(trace::OrderKind::event_query, kLegacyStreamId, event);
  return runtime().handler->order.event_query(event);
}
REPRISE_EXPORT CUresult cuEventSynchronize(CUevent event) {
  const HookScope scope;
  if (!scope) return driver().cuEventSynchronize(event);
  record_order(trace::OrderKind::event_synchronize, kLegacyStreamId, event);
  return runtime().handler->order.event_synchronize(event);
}

#undef cuEventElapsedTime
#undef cuEventDestroy
// The two forms differ only in the error code for an event that is not complete.
REPRISE_EXPORT CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  if (watch_flags() == 0) return driver().cuEventElapsedTime_v1(milliseconds, start, end);
  return elapsed(milliseconds, start, end);
}
REPRISE_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return elapsed(milliseconds, start, end);
}
REPRISE_EXPORT CUresult cuEventDestroy(CUevent event) { return destroy(event); }
REPRISE_EXPORT CUresult cuEventDestroy_v2(CUevent event) { return destroy(event); }

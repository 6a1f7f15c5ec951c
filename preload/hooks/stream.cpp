// Streams: creation, synchronisation, waiting, capture.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/base/sequence.h"
#include "preload/calls/handler.h"
#include "preload/defragment/defragmenter.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/record/recorder.h"
#include "preload/tracking/streams.h"

namespace reprise {
namespace {

void record_order(trace::OrderKind kind, CUstream stream, CUevent event) {
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    recorder->order(kind, stream_id(stream), reinterpret_cast<uint64_t>(event), next_sequence());
  }
}

CUresult created(CUresult result, const CUstream* stream) {
  const HookScope scope;
  if (scope && result == CUDA_SUCCESS && stream != nullptr) stream_created(*stream);
  return result;
}

CUresult destroy(CUstream stream) {
  if (const HookScope scope(defragmenting()); scope) {
    runtime().defragmenter->stream_destroyed(stream);
    capture_closed(stream);
    return driver().cuStreamDestroy(stream);
  }
  const HookScope scope;
  if (!scope) return driver().cuStreamDestroy(stream);
  const CUresult result = runtime().handler->order.stream_destroy(stream);
  if (result == CUDA_SUCCESS) stream_destroyed(stream);
  return result;
}

CUresult query(CUstream stream) {
  const HookScope scope;
  if (!scope || capturing(stream)) return driver().cuStreamQuery(stream);
  record_order(trace::OrderKind::stream_query, stream, nullptr);
  return runtime().handler->order.stream_query(stream);
}

CUresult synchronize(CUstream stream) {
  const HookScope scope;
  if (!scope || capturing(stream)) return driver().cuStreamSynchronize(stream);
  record_order(trace::OrderKind::stream_synchronize, stream, nullptr);
  return runtime().handler->order.stream_synchronize(stream);
}

CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
  const HookScope scope;
  if (!scope || capturing(stream)) return driver().cuStreamWaitEvent(stream, event, flags);
  if (joins_capture(event)) {
    // What was called on this stream before is not captured.
    CUresult result = before_ordered(RowId::k_cuStreamWaitEvent);
    if (result == CUDA_SUCCESS) result = runtime().handler->order.before_joining_capture();
    return result == CUDA_SUCCESS ? driver().cuStreamWaitEvent(stream, event, flags) : result;
  }
  if (flags != 0) {  // for captures alone: the driver refuses it, or knows what it means
    const CUresult order = before_ordered(RowId::k_cuStreamWaitEvent);
    return order == CUDA_SUCCESS ? driver().cuStreamWaitEvent(stream, event, flags) : order;
  }
  record_order(trace::OrderKind::event_wait, stream, event);
  return runtime().handler->order.stream_wait_event(stream, event, flags);
}

// `begin` is the driver's own call: everything before it is in order, nothing is deferred until the capture ends.
template <typename Begin>
CUresult begin_capture(CUstream stream, Begin begin) {
  const HookScope scope(watch_flags() != 0 || defragmenting());
  if (!scope) return begin();
  if (const CUresult order = before_ordered(RowId::k_cuStreamBeginCapture_v2); order != CUDA_SUCCESS) return order;
  Handler* const handler = runtime().handler;
  CUresult result = handler != nullptr ? handler->order.capture_begin() : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) result = begin();
  if (result == CUDA_SUCCESS) {
    capture_opened(stream);
  } else if (handler != nullptr) {
    handler->order.capture_end();
  }
  return result;
}

CUresult end_capture(CUstream stream, CUgraph* graph) {
  const HookScope scope(watch_flags() != 0 || defragmenting());
  const CUresult result = driver().cuStreamEndCapture(stream, graph);
  if (!scope) return result;
  // An invalidated capture ends here, too; only a call on a stream that does not capture leaves things as they are.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (result == CUDA_SUCCESS || driver().cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
      status == CU_STREAM_CAPTURE_STATUS_NONE) {
    capture_closed(stream);
  }
  return result;
}

CUresult context_synchronize() {
  if (Recorder* recorder = runtime().recorder; recorder != nullptr) {
    recorder->order(trace::OrderKind::context_synchronize, kLegacyStreamId, 0, next_sequence());
  }
  return runtime().handler->order.context_synchronize();
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return created(driver().cuStreamCreate(stream, flags), stream);
}
REPRISE_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return created(driver().cuStreamCreateWithPriority(stream, flags, priority), stream);
}
REPRISE_EXPORT CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags, int priority) {
  return created(driver().cuGreenCtxStreamCreate(stream, context, flags, priority), stream);
}
#undef cuStreamDestroy
REPRISE_EXPORT CUresult cuStreamDestroy(CUstream stream) { return destroy(stream); }
REPRISE_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) { return destroy(stream); }

REPRISE_EXPORT CUresult cuStreamQuery(CUstream stream) { return query(explicit_stream(stream, kLegacy)); }
REPRISE_EXPORT CUresult cuStreamQuery_ptsz(CUstream stream) { return query(explicit_stream(stream, kPerThread)); }
REPRISE_EXPORT CUresult cuStreamSynchronize(CUstream stream) { return synchronize(explicit_stream(stream, kLegacy)); }
REPRISE_EXPORT CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return synchronize(explicit_stream(stream, kPerThread));
}
REPRISE_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(explicit_stream(stream, kLegacy), event, flags);
}
REPRISE_EXPORT CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return wait_event(explicit_stream(stream, kPerThread), event, flags);
}

REPRISE_EXPORT CUresult cuCtxSynchronize() {
  const HookScope scope;
  return scope ? context_synchronize() : driver().cuCtxSynchronize();
}
REPRISE_EXPORT CUresult cuCtxSynchronize_v2(CUcontext context) {
  const HookScope scope;
  if (!scope) return driver().cuCtxSynchronize_v2(context);
  CUcontext current = nullptr;
  driver().cuCtxGetCurrent(&current);
  if (context == nullptr || context == current) return context_synchronize();
  if (const CUresult result = driver().cuCtxPushCurrent(context); result != CUDA_SUCCESS) return result;
  const CUresult result = context_synchronize();
  driver().cuCtxPopCurrent(&current);
  return result;
}

#undef cuStreamBeginCapture
REPRISE_EXPORT CUresult cuStreamBeginCapture(CUstream stream) {
  const CUstream named = explicit_stream(stream, kLegacy);
  return begin_capture(named, [=] { return driver().cuStreamBeginCapture_v1(named); });
}
REPRISE_EXPORT CUresult cuStreamBeginCapture_ptsz(CUstream stream) {
  const CUstream named = explicit_stream(stream, kPerThread);
  return begin_capture(named, [=] { return driver().cuStreamBeginCapture_v1(named); });
}
REPRISE_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  const CUstream named = explicit_stream(stream, kLegacy);
  return begin_capture(named, [=] { return driver().cuStreamBeginCapture_v2(named, mode); });
}
REPRISE_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  const CUstream named = explicit_stream(stream, kPerThread);
  return begin_capture(named, [=] { return driver().cuStreamBeginCapture_v2(named, mode); });
}
REPRISE_EXPORT CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode* dependencies,
                                                    const CUgraphEdgeData* data, size_t count,
                                                    CUstreamCaptureMode mode) {
  const CUstream named = explicit_stream(stream, kLegacy);
  return begin_capture(
      named, [=] { return driver().cuStreamBeginCaptureToGraph(named, graph, dependencies, data, count, mode); });
}
REPRISE_EXPORT CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
                                                         const CUgraphNode* dependencies, const CUgraphEdgeData* data,
                                                         size_t count, CUstreamCaptureMode mode) {
  const CUstream named = explicit_stream(stream, kPerThread);
  return begin_capture(
      named, [=] { return driver().cuStreamBeginCaptureToGraph(named, graph, dependencies, data, count, mode); });
}
REPRISE_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end_capture(explicit_stream(stream, kLegacy), graph);
}
REPRISE_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end_capture(explicit_stream(stream, kPerThread), graph);
}

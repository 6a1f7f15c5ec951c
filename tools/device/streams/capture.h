// Stream capture: which calls are allowed while streams are captured, and what becomes of their work. Callers: the API
// functions, before they submit or synchronise.
#pragma once
#include <memory>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/operation.h"

namespace reprise::sim {

class Context;
class Event;
class Graph;
class Pool;
class Stream;

// For calls that are unsafe in a capture (cuMemAlloc and the like): CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while this
// thread may not make them.
CUresult refuse_in_capture();
// For calls that would wait for a captured stream, event or context; they end the capture, too. A wait for a context
// does so whatever the modes of captures and threads.
CUresult refuse_captured(Stream& stream);
CUresult refuse_captured(Event& event);
CUresult refuse_captured(Context& context);
// The legacy stream must not be used while a blocking stream of its context is captured.
CUresult refuse_implicit_order(Stream& stream);
// Is that so? For questions, which end no capture.
bool has_implicit_order(const Stream& stream);

// Puts work into the graph of a stream that is captured.
CUresult capture_operation(Stream& stream, OperationPointer operation);
CUresult capture_graph(Stream& stream, const Graph& graph);
CUresult capture_record(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, CUevent handle,
                        unsigned flags);
// *captured tells whether the wait became an edge; otherwise the caller waits as usual.
CUresult capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, CUevent handle,
                      unsigned flags, bool* captured);
// cuMemAllocAsync and cuMemFreeAsync in a capture: memory of the graph, at an address that is known now.
CUresult capture_allocation(Stream& stream, Pool& pool, uint64_t bytes, CUdeviceptr* address);
CUresult capture_free(Stream& stream, CUdeviceptr address);
// The stream is destroyed. What a fork has captured stays, and must have been joined by the end of the capture, as of
// any fork (cuStreamEndCapture); a capture cannot outlive the stream that it began on.
void abandon_capture(Stream& stream);

}  // namespace reprise::sim

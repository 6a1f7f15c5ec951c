// cuStreamBeginCapture and its kin.
#include "tools/device/graphs/capture.h"
#include "tools/device/streams/capture.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

bool is_mode(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUresult nodes_of(const CUgraphNode* handles, size_t count, std::vector<GraphNode*>* nodes) {
  SIM_REQUIRE(count == 0 || handles != nullptr, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = graph_nodes().get(handles[i]);
    SIM_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
    nodes->push_back(node);
  }
  return CUDA_SUCCESS;
}

// Asking about the legacy stream while a blocking one is captured is an error, and no more than that.
CUresult find_asked_stream(Context& context, CUstream handle, std::shared_ptr<Stream>* stream) {
  SIM_TRY(resolve_stream(context, handle, stream));
  SIM_TRY((*stream)->context.status());
  return has_implicit_order(**stream) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(is_mode(mode), CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  std::shared_ptr<Graph> graph = make_graph();
  const CUgraph handle = graph->handle;
  const CUresult result = begin_capture(stream, mode, std::move(graph), {});
  if (result != CUDA_SUCCESS) graphs().remove(handle);
  return result;
}

CUresult cuStreamBeginCapture(CUstream hStream) {
  return cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* /*dependencyData*/, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Graph> graph = graphs().share(hGraph);
  SIM_REQUIRE(is_mode(mode) && graph != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphNode*> nodes;
  SIM_TRY(nodes_of(dependencies, numDependencies, &nodes));
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  return begin_capture(stream, mode, std::move(graph), nodes);
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(phGraph != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  std::shared_ptr<Graph> graph;
  *phGraph = nullptr;
  SIM_TRY(end_capture(stream, &graph));
  *phGraph = graph->handle;
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(captureStatus != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_asked_stream(*context, hStream, &stream));
  *captureStatus = capture_state(*stream).status;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                                   CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out, size_t* numDependencies_out) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(captureStatus_out != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Stream> stream;
  SIM_TRY(find_asked_stream(*context, hStream, &stream));
  const CaptureState state = capture_state(*stream);
  *captureStatus_out = state.status;
  if (edgeData_out != nullptr) *edgeData_out = nullptr;
  if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id_out != nullptr) *id_out = state.id;
  if (graph_out != nullptr) *graph_out = state.graph;
  if (dependencies_out != nullptr) *dependencies_out = state.dependencies->data();
  if (numDependencies_out != nullptr) *numDependencies_out = state.dependencies->size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out,
                                   CUgraph* graph_out, const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, nullptr,
                                   numDependencies_out);
}

CUresult cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus* captureStatus_out, cuuint64_t* id_out) {
  return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, nullptr, nullptr, nullptr, nullptr);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* /*dependencyData*/, size_t numDependencies,
                                              unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES || flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES,
              CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphNode*> nodes;
  SIM_TRY(nodes_of(dependencies, numDependencies, &nodes));
  std::shared_ptr<Stream> stream;
  SIM_TRY(resolve_stream(*context, hStream, &stream));
  return set_frontier(*stream, nodes, flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies, size_t numDependencies,
                                           unsigned int flags) {
  return cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, numDependencies, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIM_ENTER();
  SIM_REQUIRE(mode != nullptr && is_mode(*mode), CUDA_ERROR_INVALID_VALUE);
  std::swap(*mode, thread_state.capture_mode);
  return CUDA_SUCCESS;
}

}  // extern "C"

#include "tools/device/graphs/capture.h"

#include <algorithm>
#include <set>

#include "tools/device/base/thread.h"
#include "tools/device/engines/device.h"
#include "tools/device/graphs/parameters.h"
#include "tools/device/memory/memory.h"
#include "tools/device/memory/pool.h"
#include "tools/device/streams/capture.h"

namespace reprise::sim {
namespace {

// Capture is rare: one lock for all of it, and a count that keeps threads away from the lock while no stream is
// captured.
std::mutex& capture_mutex() {
  static std::mutex& instance = *new std::mutex;
  return instance;
}
std::atomic<int> active_captures{0};

std::vector<std::shared_ptr<Capture>>& captures() {
  static auto& instance = *new std::vector<std::shared_ptr<Capture>>;
  return instance;
}

void release_streams(Capture& capture) {
  for (const auto& [stream, frontier] : capture.frontiers) {
    stream->capturing.store(false);
    stream->capture = nullptr;
  }
}

// The capture is over: streams run again.
void finish(const std::shared_ptr<Capture>& capture) {
  release_streams(*capture);
  capture->active = false;
  std::erase(captures(), capture);
  active_captures.fetch_sub(1);
}

void invalidate(Capture& capture) { capture.valid = false; }

void join(const std::shared_ptr<Capture>& capture, const std::shared_ptr<Stream>& stream,
          const std::vector<GraphNode*>& frontier) {
  capture->frontiers.emplace_back(stream, frontier);
  stream->capture = capture;
  stream->capturing.store(true);
}

std::vector<GraphNode*>& frontier_of(Capture& capture, const Stream& stream) {
  return std::find_if(capture.frontiers.begin(), capture.frontiers.end(),
                      [&](const auto& entry) { return entry.first.get() == &stream; })
      ->second;
}

void add_unique(std::vector<GraphNode*>& to, const std::vector<GraphNode*>& more) {
  for (GraphNode* node : more) {
    if (std::find(to.begin(), to.end(), node) == to.end()) to.push_back(node);
  }
}

// Everything that other streams did must be in the past of what the origin stream did last.
bool all_joined(Capture& capture) {
  std::set<const GraphNode*> past;
  std::vector<const GraphNode*> open(capture.frontiers.front().second.begin(), capture.frontiers.front().second.end());
  while (!open.empty()) {
    const GraphNode* node = open.back();
    open.pop_back();
    if (!past.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  for (const auto& [stream, frontier] : capture.frontiers) {
    for (const GraphNode* node : frontier) {
      if (past.count(node) == 0) return false;
    }
  }
  return true;
}

// May this thread make calls that are unsafe while `capture` goes on?
bool forbids_unsafe(const Capture& capture) {
  if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) return false;
  const bool mine = capture.thread == pthread_self();
  switch (thread_state.capture_mode) {
    case CU_STREAM_CAPTURE_MODE_RELAXED:
      return false;
    case CU_STREAM_CAPTURE_MODE_THREAD_LOCAL:
      return mine;
    default:
      return mine || capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
  }
}

// Adds a node behind the stream's frontier. Under the lock.
CUresult append(Stream& stream, CUgraphNodeType type, OperationPointer operation, GraphNode** added) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr || !capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  std::vector<GraphNode*>& frontier = frontier_of(*capture, stream);
  *added = capture->graph->add(type, std::move(operation), frontier);
  frontier = {*added};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                       const std::vector<GraphNode*>& frontier) {
  static std::atomic<uint64_t> next_id{1};
  const std::lock_guard lock(capture_mutex());
  if (stream->kind == StreamKind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->id = next_id++;
  capture->mode = mode;
  capture->thread = pthread_self();
  capture->graph = std::move(graph);
  join(capture, stream, frontier);
  captures().push_back(std::move(capture));
  active_captures.fetch_add(1);
  return CUDA_SUCCESS;
}

CUresult end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* graph) {
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->frontiers.front().first != stream) {
    invalidate(*capture);
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != pthread_self()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  const bool joined = all_joined(*capture);
  finish(capture);
  const CUresult result = !capture->valid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : !joined       ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                          : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS) {
    *graph = capture->graph;
  } else {
    graphs().remove(capture->graph->handle);
  }
  return result;
}

CaptureState capture_state(const Stream& stream) {
  const std::lock_guard lock(capture_mutex());
  CaptureState state;
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return state;
  state.status = capture->valid ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  state.id = capture->id;
  state.graph = capture->graph->handle;
  capture->told.clear();
  for (const GraphNode* node : frontier_of(*capture, stream)) capture->told.push_back(node->handle);
  state.dependencies = &capture->told;
  return state;
}

CUresult set_frontier(Stream& stream, const std::vector<GraphNode*>& nodes, bool replace) {
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (!capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (const GraphNode* node : nodes) {
    if (node->graph != capture->graph.get()) return CUDA_ERROR_INVALID_VALUE;
  }
  std::vector<GraphNode*>& frontier = frontier_of(*capture, stream);
  if (replace) frontier.clear();
  add_unique(frontier, nodes);
  return CUDA_SUCCESS;
}

CUresult refuse_in_capture() {
  if (active_captures.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures()) {
    if (!forbids_unsafe(*capture)) continue;
    invalidate(*capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_captured(Stream& stream) {
  if (active_captures.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  if (!stream.capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  invalidate(*stream.capture);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult refuse_captured(Event& event) {
  const std::shared_ptr<CapturePoint> point = event.captured();
  if (point == nullptr) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  if (point->capture->active) invalidate(*point->capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult refuse_captured(Context& context) {
  if (active_captures.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures()) {
    if (&capture->frontiers.front().first->context != &context) continue;
    invalidate(*capture);
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

bool has_implicit_order(const Stream& stream) {
  if (stream.kind != StreamKind::legacy || active_captures.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(capture_mutex());
  for (const std::shared_ptr<Capture>& capture : captures()) {
    for (const auto& [captured, frontier] : capture->frontiers) {
      if (captured->blocking() && &captured->context == &stream.context) return true;
    }
  }
  return false;
}

CUresult refuse_implicit_order(Stream& stream) {
  if (stream.kind != StreamKind::legacy || active_captures.load(std::memory_order_relaxed) == 0) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  CUresult result = CUDA_SUCCESS;
  for (const std::shared_ptr<Capture>& capture : captures()) {
    for (const auto& [captured, frontier] : capture->frontiers) {
      if (!captured->blocking() || &captured->context != &stream.context) continue;
      invalidate(*capture);
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  return result;
}

CUresult capture_operation(Stream& stream, OperationPointer operation) {
  const std::lock_guard lock(capture_mutex());
  GraphNode* node = nullptr;
  const CUgraphNodeType type = node_type(*operation);
  return append(stream, type, std::move(operation), &node);
}

CUresult capture_graph(Stream& stream, const Graph& graph) {
  const std::lock_guard lock(capture_mutex());
  GraphNode* node = nullptr;
  const CUresult result = append(stream, CU_GRAPH_NODE_TYPE_GRAPH, nullptr, &node);
  if (result == CUDA_SUCCESS) node->child = graph.clone();
  return result;
}

CUresult capture_record(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, CUevent handle,
                        unsigned flags) {
  const std::lock_guard lock(capture_mutex());
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
    GraphNode* node = nullptr;
    const CUresult result = append(*stream, CU_GRAPH_NODE_TYPE_EVENT_RECORD, nullptr, &node);
    if (result == CUDA_SUCCESS) node->event = handle;
    return result;
  }
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || !capture->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto point = std::make_shared<CapturePoint>();
  point->capture = capture;
  point->nodes = frontier_of(*capture, *stream);
  event->set_captured(std::move(point));
  return CUDA_SUCCESS;
}

CUresult capture_wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, CUevent handle,
                      unsigned flags, bool* captured) {
  *captured = false;
  const std::shared_ptr<CapturePoint> point = event->captured();
  if (point == nullptr && !stream->capturing.load()) return CUDA_SUCCESS;
  const std::lock_guard lock(capture_mutex());
  *captured = true;
  const std::shared_ptr<Capture> own = stream->capture;
  if (own != nullptr && !own->valid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (own != nullptr && (flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    GraphNode* node = nullptr;
    const CUresult result = append(*stream, CU_GRAPH_NODE_TYPE_WAIT_EVENT, nullptr, &node);
    if (result == CUDA_SUCCESS) node->event = handle;
    return result;
  }
  if (point == nullptr) {
    if (event->point() == nullptr) return CUDA_SUCCESS;
    invalidate(*own);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  const std::shared_ptr<Capture>& other = point->capture;
  if (!other->active) return CUDA_ERROR_CAPTURED_EVENT;
  if (own != nullptr && own != other) {
    invalidate(*own);
    invalidate(*other);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (own != nullptr) {
    add_unique(frontier_of(*own, *stream), point->nodes);
    return CUDA_SUCCESS;
  }
  if (stream->kind == StreamKind::legacy) {
    invalidate(*other);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  join(other, stream, point->nodes);
  return CUDA_SUCCESS;
}

CUresult capture_allocation(Stream& stream, Pool& pool, uint64_t bytes, CUdeviceptr* address) {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  parameters.poolProps = pool.properties;
  parameters.bytesize = bytes;
  std::shared_ptr<GraphMemory> memory;
  const CUresult allocated = allocate_graph_memory(stream.context, &parameters, &memory);
  if (allocated != CUDA_SUCCESS) return allocated;
  const std::lock_guard lock(capture_mutex());
  GraphNode* node = nullptr;
  const CUresult result = append(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, nullptr, &node);
  if (result != CUDA_SUCCESS) return result;
  *address = memory->address;
  node->memory = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult capture_free(Stream& stream, CUdeviceptr address) {
  const std::lock_guard lock(capture_mutex());
  GraphNode* node = nullptr;
  const CUresult result = append(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, nullptr, &node);
  if (result == CUDA_SUCCESS) node->freed = address;
  return result;
}

void abandon_capture(Stream& stream) {
  if (active_captures.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(capture_mutex());
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr || capture->frontiers.front().first.get() != &stream) return;
  invalidate(*capture);
  graphs().remove(capture->graph->handle);
  finish(capture);
}

}  // namespace reprise::sim

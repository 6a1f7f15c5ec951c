// The state of a stream capture. Callers: capture_api.cpp; all other code uses streams/capture.h.
#pragma once
#include <pthread.h>

#include <memory>
#include <utility>
#include <vector>

#include "tools/device/graphs/graph.h"
#include "tools/device/streams/stream.h"

namespace reprise::sim {

class Capture {
 public:
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  pthread_t thread = {};
  bool valid = true;
  bool active = true;
  std::shared_ptr<Graph> graph;
  // Streams, the origin first, each with the nodes that its next one comes after.
  std::vector<std::pair<std::shared_ptr<Stream>, std::vector<GraphNode*>>> frontiers;
  std::vector<CUgraphNode> told;  // what cuStreamGetCaptureInfo handed out last
};

// An event that was recorded in a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode*> nodes;
};

struct CaptureState {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  uint64_t id = 0;
  CUgraph graph = nullptr;
  const std::vector<CUgraphNode>* dependencies = nullptr;  // until the next question about this capture
};

CUresult begin_capture(const std::shared_ptr<Stream>& stream, CUstreamCaptureMode mode, std::shared_ptr<Graph> graph,
                       const std::vector<GraphNode*>& frontier);
CUresult end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<Graph>* graph);
CaptureState capture_state(const Stream& stream);
CUresult set_frontier(Stream& stream, const std::vector<GraphNode*>& nodes, bool replace);

}  // namespace reprise::sim

// Graphs: nodes that are operations (or events, or child graphs) and edges between them; instantiated graphs are
// private copies with a fixed order. Callers: the graph functions and stream capture.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tools/device/base/cuda_api.h"
#include "tools/device/base/handles.h"
#include "tools/device/base/operation.h"
#include "tools/device/streams/event.h"

namespace reprise::sim {

class Device;
class Graph;

// Memory that a graph allocates: there from the node's making until graph and instances are gone, and what a launch has
// allocated is freed.
struct GraphMemory {
  ~GraphMemory();
  Device* device = nullptr;
  CUdeviceptr address = 0;
  CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
  CUmemAccessDesc access = {};
  std::shared_ptr<std::atomic<bool>> allocated;  // as in Range
};

struct GraphNode {
  CUgraphNode handle = nullptr;
  CUgraphNode original = nullptr;  // in the graph this one was cloned from
  Graph* graph = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  OperationPointer operation;           // kernel, copy, memset, host; the empty one otherwise
  std::shared_ptr<Graph> child;         // type graph
  CUevent event = nullptr;              // event record and wait
  std::shared_ptr<GraphMemory> memory;  // type allocate
  CUdeviceptr freed = 0;                // type free
  bool enabled = true;
  std::vector<GraphNode*> dependencies;
  std::map<int, CUlaunchAttributeValue> attributes;  // of kernel nodes
  std::vector<void*> parameter_pointers;             // what GetParams hands out
};

struct UserObject {
  void* object = nullptr;
  CUhostFn destroy = nullptr;
  unsigned references = 0;
};

class Graph {
 public:
  ~Graph();
  CUgraph handle = nullptr;
  CUgraph original = nullptr;

  GraphNode* add(CUgraphNodeType type, OperationPointer operation, const std::vector<GraphNode*>& dependencies);
  void remove(GraphNode* node);
  const std::vector<std::shared_ptr<GraphNode>>& nodes() const { return nodes_; }
  // Nodes in an order that respects the edges; empty for a cyclic graph that has nodes.
  std::vector<GraphNode*> order() const;
  std::shared_ptr<Graph> clone() const;
  // The node that was cloned from `original`, directly or through several clones; nullptr without one.
  GraphNode* find_clone_of(const GraphNode& original) const;

  std::map<CUuserObject, unsigned> user_objects;  // references that it holds

 private:
  std::vector<std::shared_ptr<GraphNode>> nodes_;
};

class GraphExec {
 public:
  // Charges the device with what an instantiated graph takes, until the end of the object. nullptr: it has no room.
  static std::shared_ptr<GraphExec> make(Device& device);
  ~GraphExec();
  std::shared_ptr<Graph> graph;  // our clone
  uint64_t flags = 0;
  // Launches behind what `stream` holds; wait and record nodes become the launch's own.
  CUresult launch(const std::shared_ptr<Stream>& stream);
  // Something in the clone changed.
  void forget_plan() { plan_ = nullptr; }
  std::mutex mutex;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
  Device* charged_ = nullptr;
};

using GraphTable = HandleTable<Graph, CUgraph, HandleKind::graph>;
using GraphNodeTable = HandleTable<GraphNode, CUgraphNode, HandleKind::graph_node>;
using GraphExecTable = HandleTable<GraphExec, CUgraphExec, HandleKind::graph_exec>;
using UserObjectTable = HandleTable<UserObject, CUuserObject, HandleKind::user_object>;
GraphTable& graphs();
GraphNodeTable& graph_nodes();
GraphExecTable& graph_execs();
UserObjectTable& user_objects();

// A new graph with a handle.
std::shared_ptr<Graph> make_graph();
void release_user_object(CUuserObject handle, unsigned count);
CUgraphNodeType node_type(const Operation& operation);

}  // namespace reprise::sim

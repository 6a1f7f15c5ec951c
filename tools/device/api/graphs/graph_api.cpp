// Graphs: making them, nodes and edges.
#include <algorithm>

#include "tools/device/graphs/graph.h"
#include "tools/device/graphs/parameters.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/operations.h"

using namespace reprise::sim;

namespace {

CUresult find_nodes(const Graph& graph, const CUgraphNode* handles, size_t count, std::vector<GraphNode*>* nodes) {
  SIM_REQUIRE(count == 0 || handles != nullptr, CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = graph_nodes().get(handles[i]);
    SIM_REQUIRE(node != nullptr && node->graph == &graph, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(std::find(nodes->begin(), nodes->end(), node) == nodes->end(), CUDA_ERROR_INVALID_VALUE);
    nodes->push_back(node);
  }
  return CUDA_SUCCESS;
}

// Adds a node whose content fill(node) makes, and takes it out again when that fails.
template <typename Fill>
CUresult add_node(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies, size_t count,
                  CUgraphNodeType type, Fill fill) {
  const std::shared_ptr<Graph> graph = graphs().share(graph_handle);
  SIM_REQUIRE(handle != nullptr && graph != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::vector<GraphNode*> edges;
  SIM_TRY(find_nodes(*graph, dependencies, count, &edges));
  GraphNode* node = graph->add(type, nullptr, edges);
  if (const CUresult result = fill(*node); result != CUDA_SUCCESS) {
    graph->remove(node);
    return result;
  }
  *handle = node->handle;
  return CUDA_SUCCESS;
}

CUresult add_event_node(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeType type, CUevent event) {
  SIM_REQUIRE(events().get(event) != nullptr, CUDA_ERROR_INVALID_VALUE);
  return add_node(handle, graph, dependencies, count, type, [&](GraphNode& node) {
    node.event = event;
    return CUDA_SUCCESS;
  });
}

// The answer of functions that list nodes: all, or only how many when there is no array.
CUresult list(const std::vector<CUgraphNode>& all, CUgraphNode* nodes, size_t* count) {
  SIM_REQUIRE(count != nullptr, CUDA_ERROR_INVALID_VALUE);
  if (nodes == nullptr) {
    *count = all.size();
    return CUDA_SUCCESS;
  }
  const size_t room = *count;
  for (size_t i = 0; i < room; ++i) nodes[i] = i < all.size() ? all[i] : nullptr;
  *count = std::min(room, all.size());
  return CUDA_SUCCESS;
}

std::vector<CUgraphNode> dependents_of(const GraphNode& node) {
  std::vector<CUgraphNode> all;
  for (const auto& other : node.graph->nodes()) {
    const auto& edges = other->dependencies;
    if (std::find(edges.begin(), edges.end(), &node) != edges.end()) all.push_back(other->handle);
  }
  return all;
}

std::vector<CUgraphNode> dependencies_of(const GraphNode& node) {
  std::vector<CUgraphNode> all;
  for (const GraphNode* dependency : node.dependencies) all.push_back(dependency->handle);
  return all;
}

void clear(CUgraphEdgeData* data, size_t count) {
  if (data != nullptr) std::fill_n(data, count, CUgraphEdgeData{});
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count, bool add) {
  const std::shared_ptr<Graph> graph = graphs().share(handle);
  SIM_REQUIRE(graph != nullptr && (count == 0 || (from != nullptr && to != nullptr)), CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; ++i) {
    GraphNode* first = graph_nodes().get(from[i]);
    GraphNode* second = graph_nodes().get(to[i]);
    SIM_REQUIRE(first != nullptr && second != nullptr && first != second, CUDA_ERROR_INVALID_VALUE);
    SIM_REQUIRE(first->graph == graph.get() && second->graph == graph.get(), CUDA_ERROR_INVALID_VALUE);
    auto& edges = second->dependencies;
    const bool there = std::find(edges.begin(), edges.end(), first) != edges.end();
    SIM_REQUIRE(there != add, CUDA_ERROR_INVALID_VALUE);
    if (add) {
      edges.push_back(first);
    } else {
      std::erase(edges, first);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  SIM_ENTER();
  SIM_REQUIRE(phGraph != nullptr && flags == 0, CUDA_ERROR_INVALID_VALUE);
  *phGraph = make_graph()->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  SIM_ENTER();
  return graphs().remove(hGraph) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  SIM_ENTER();
  const std::shared_ptr<Graph> graph = graphs().share(originalGraph);
  SIM_REQUIRE(phGraphClone != nullptr && graph != nullptr, CUDA_ERROR_INVALID_VALUE);
  *phGraphClone = graph->clone()->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph) {
  SIM_ENTER();
  const std::shared_ptr<Graph> graph = graphs().share(hClonedGraph);
  const GraphNode* original = graph_nodes().get(hOriginalNode);
  SIM_REQUIRE(phNode != nullptr && graph != nullptr && original != nullptr, CUDA_ERROR_INVALID_VALUE);
  const GraphNode* found = graph->find_clone_of(*original);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_VALUE);
  *phNode = found->handle;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_KERNEL,
                  [&](GraphNode& node) { return kernel_operation(*context, *nodeParams, &node.operation); });
}

CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*nodeParams);
  return cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies, &wide);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(copyParams != nullptr && (ctx == nullptr || find_context(ctx) != nullptr), CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMCPY,
                  [&](GraphNode& node) { return memcpy_operation(*context, *copyParams, &node.operation); });
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                              size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(memsetParams != nullptr && (ctx == nullptr || find_context(ctx) != nullptr), CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEMSET,
                  [&](GraphNode& node) { return memset_operation(*memsetParams, &node.operation); });
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                            size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_HOST,
                  [&](GraphNode& node) { return host_operation(*nodeParams, &node.operation); });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                             size_t numDependencies) {
  SIM_ENTER();
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_EMPTY,
                  [](GraphNode&) { return CUDA_SUCCESS; });
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                  size_t numDependencies, CUgraph childGraph) {
  SIM_ENTER();
  const std::shared_ptr<Graph> child = graphs().share(childGraph);
  SIM_REQUIRE(child != nullptr, CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_GRAPH, [&](GraphNode& node) {
    node.child = child->clone();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                   size_t numDependencies, CUevent event) {
  SIM_ENTER();
  return add_event_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                 size_t numDependencies, CUevent event) {
  SIM_ENTER();
  return add_event_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                                size_t numDependencies, CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                  [&](GraphNode& node) { return allocate_graph_memory(*context, nodeParams, &node.memory); });
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                               size_t numDependencies, CUdeviceptr dptr) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(dptr != 0, CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_MEM_FREE,
                  [&](GraphNode& node) {
                    node.freed = dptr;
                    return CUDA_SUCCESS;
                  });
}

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData* /*dependencyData*/, size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return add_node(phGraphNode, hGraph, dependencies, numDependencies, nodeParams->type,
                  [&](GraphNode& node) { return describe(*context, *nodeParams, &node); });
}

CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies, nodeParams);
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  SIM_ENTER();
  GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
  node->graph->remove(node);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  SIM_ENTER();
  const std::shared_ptr<Graph> graph = graphs().share(hGraph);
  SIM_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::vector<CUgraphNode> all;
  for (const auto& node : graph->nodes()) all.push_back(node->handle);
  return list(all, nodes, numNodes);
}

CUresult cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  SIM_ENTER();
  const std::shared_ptr<Graph> graph = graphs().share(hGraph);
  SIM_REQUIRE(graph != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::vector<CUgraphNode> all;
  for (const auto& node : graph->nodes()) {
    if (node->dependencies.empty()) all.push_back(node->handle);
  }
  return list(all, rootNodes, numRootNodes);
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
                            size_t* numEdges) {
  SIM_ENTER();
  const std::shared_ptr<Graph> graph = graphs().share(hGraph);
  SIM_REQUIRE(graph != nullptr && numEdges != nullptr && (from == nullptr) == (to == nullptr),
              CUDA_ERROR_INVALID_VALUE);
  std::vector<CUgraphNode> starts;
  std::vector<CUgraphNode> ends;
  for (const auto& node : graph->nodes()) {
    for (const GraphNode* dependency : node->dependencies) {
      starts.push_back(dependency->handle);
      ends.push_back(node->handle);
    }
  }
  size_t second = *numEdges;
  SIM_TRY(list(starts, from, numEdges));
  if (to == nullptr) return CUDA_SUCCESS;
  clear(edgeData, *numEdges);
  return list(ends, to, &second);
}

CUresult cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return cuGraphGetEdges_v2(hGraph, from, to, nullptr, numEdges);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
                                       size_t* numDependencies) {
  SIM_ENTER();
  const GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(list(dependencies_of(*node), dependencies, numDependencies));
  if (dependencies != nullptr) clear(edgeData, *numDependencies);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies) {
  return cuGraphNodeGetDependencies_v2(hNode, dependencies, nullptr, numDependencies);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData,
                                         size_t* numDependentNodes) {
  SIM_ENTER();
  const GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(list(dependents_of(*node), dependentNodes, numDependentNodes));
  if (dependentNodes != nullptr) clear(edgeData, *numDependentNodes);
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* dependentNodes, size_t* numDependentNodes) {
  return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, nullptr, numDependentNodes);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* /*edgeData*/, size_t numDependencies) {
  SIM_ENTER();
  return change_edges(hGraph, from, to, numDependencies, true);
}

CUresult cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t numDependencies) {
  return cuGraphAddDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                      const CUgraphEdgeData* /*edgeData*/, size_t numDependencies) {
  SIM_ENTER();
  return change_edges(hGraph, from, to, numDependencies, false);
}

CUresult cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return cuGraphRemoveDependencies_v2(hGraph, from, to, nullptr, numDependencies);
}

}  // extern "C"

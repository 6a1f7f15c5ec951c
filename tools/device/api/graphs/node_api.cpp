// Graph nodes: reading and changing what they do, in a graph and in an instance.
#include <functional>

#include "tools/device/graphs/graph.h"
#include "tools/device/graphs/parameters.h"
#include "tools/device/memory/copy.h"
#include "tools/device/streams/enter.h"
#include "tools/device/streams/operations.h"

using namespace reprise::sim;

namespace {

CUresult find_node(CUgraphNode handle, CUgraphNodeType type, GraphNode** node) {
  *node = graph_nodes().get(handle);
  return *node != nullptr && (*node)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The instance's own node for a node of the graph that it was made from. The caller holds exec->mutex.
CUresult find_own_node(GraphExec& exec, CUgraphNode handle, CUgraphNodeType type, GraphNode** node) {
  const GraphNode* original = graph_nodes().get(handle);
  SIM_REQUIRE(original != nullptr && original->type == type, CUDA_ERROR_INVALID_VALUE);
  *node = exec.graph->find_clone_of(*original);
  return *node != nullptr && (*node)->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Replaces an operation in an instance; make(&operation) makes the new one.
template <typename Make>
CUresult replace_in(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeType type, Make make) {
  const std::shared_ptr<GraphExec> exec = graph_execs().share(handle);
  SIM_REQUIRE(exec != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::lock_guard lock(exec->mutex);
  GraphNode* node = nullptr;
  SIM_TRY(find_own_node(*exec, node_handle, type, &node));
  SIM_TRY(make(*node));
  exec->forget_plan();
  return CUDA_SUCCESS;
}

// *value = what `read`, a function or a member, has of a node of that type.
template <typename Value, typename Read>
CUresult read_node(CUgraphNode handle, CUgraphNodeType type, Value* value, Read read) {
  GraphNode* node = nullptr;
  SIM_TRY(find_node(handle, type, &node));
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  *value = std::invoke(read, *node);
  return CUDA_SUCCESS;
}

// change(node) of a node of that type, by what `value` points to.
template <typename Change>
CUresult change_node(CUgraphNode handle, CUgraphNodeType type, const void* value, Change change) {
  GraphNode* node = nullptr;
  SIM_TRY(find_node(handle, type, &node));
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  return change(*node);
}

CUresult set_event(CUgraphNode handle, CUgraphNodeType type, CUevent event) {
  GraphNode* node = nullptr;
  SIM_TRY(find_node(handle, type, &node));
  SIM_REQUIRE(events().get(event) != nullptr, CUDA_ERROR_INVALID_VALUE);
  node->event = event;
  return CUDA_SUCCESS;
}

CUresult replace_event(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type, CUevent event) {
  SIM_REQUIRE(events().get(event) != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(exec, handle, type, [&](GraphNode& node) {
    node.event = event;
    return CUDA_SUCCESS;
  });
}

// Takes over what `described` has, keeping place and edges.
void take(GraphNode& node, const GraphNode& described) {
  node.operation = described.operation;
  node.child = described.child;
  node.event = described.event;
  node.freed = described.freed;
}

}  // namespace

extern "C" {

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  SIM_ENTER();
  const GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(type != nullptr && node != nullptr, CUDA_ERROR_INVALID_VALUE);
  *type = node->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, kernel_parameters);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  CUDA_KERNEL_NODE_PARAMS wide = {};
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_TRY(cuGraphKernelNodeGetParams_v2(hNode, &wide));
  *nodeParams = narrow(wide);
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  return change_node(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams,
                     [&](GraphNode& node) { return kernel_operation(*context, *nodeParams, &node.operation); });
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*nodeParams);
  return cuGraphKernelNodeSetParams_v2(hNode, &wide);
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out) {
  SIM_ENTER();
  GraphNode* node = nullptr;
  SIM_TRY(find_node(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &node));
  SIM_REQUIRE(value_out != nullptr, CUDA_ERROR_INVALID_VALUE);
  const auto found = node->attributes.find(attr);
  *value_out = found == node->attributes.end() ? CUkernelNodeAttrValue{} : found->second;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value) {
  SIM_ENTER();
  GraphNode* node = nullptr;
  SIM_TRY(find_node(hNode, CU_GRAPH_NODE_TYPE_KERNEL, &node));
  SIM_REQUIRE(value != nullptr, CUDA_ERROR_INVALID_VALUE);
  node->attributes[attr] = *value;
  return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src) {
  SIM_ENTER();
  GraphNode* to = nullptr;
  GraphNode* from = nullptr;
  SIM_TRY(find_node(dst, CU_GRAPH_NODE_TYPE_KERNEL, &to));
  SIM_TRY(find_node(src, CU_GRAPH_NODE_TYPE_KERNEL, &from));
  to->attributes = from->attributes;
  return CUDA_SUCCESS;
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, memcpy_parameters);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  return change_node(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams,
                     [&](GraphNode& node) { return memcpy_operation(*context, *nodeParams, &node.operation); });
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, memset_parameters);
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  return change_node(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams,
                     [&](GraphNode& node) { return memset_operation(*nodeParams, &node.operation); });
}

CUresult cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams,
                   [](const GraphNode& node) { return host_parameters(*node.operation); });
}

CUresult cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  return change_node(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams,
                     [&](GraphNode& node) { return host_operation(*nodeParams, &node.operation); });
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, [](const GraphNode& node) { return node.child->handle; });
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out, &GraphNode::event);
}
CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event) {
  SIM_ENTER();
  return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent* event_out) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out, &GraphNode::event);
}
CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event) {
  SIM_ENTER();
  return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS* params_out) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out,
                   [](const GraphNode& node) { return node.memory->parameters; });
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr* dptr_out) {
  SIM_ENTER();
  return read_node(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, &GraphNode::freed);
}

CUresult cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr && nodeParams != nullptr && nodeParams->type == node->type, CUDA_ERROR_INVALID_VALUE);
  GraphNode described;
  SIM_TRY(describe(*context, *nodeParams, &described));
  take(*node, described);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, nodeParams->type, [&](GraphNode& node) -> CUresult {
    GraphNode described;
    SIM_TRY(describe(*context, *nodeParams, &described));
    take(node, described);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_KERNEL,
                    [&](GraphNode& node) { return kernel_operation(*context, *nodeParams, &node.operation); });
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  const CUDA_KERNEL_NODE_PARAMS wide = widen(*nodeParams);
  return cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode, &wide);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams,
                                        CUcontext ctx) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(copyParams != nullptr && (ctx == nullptr || find_context(ctx) != nullptr), CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMCPY,
                    [&](GraphNode& node) { return memcpy_operation(*context, *copyParams, &node.operation); });
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(memsetParams != nullptr && (ctx == nullptr || find_context(ctx) != nullptr), CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_MEMSET,
                    [&](GraphNode& node) { return memset_operation(*memsetParams, &node.operation); });
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                      const CUDA_HOST_NODE_PARAMS* nodeParams) {
  SIM_ENTER();
  SIM_REQUIRE(nodeParams != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_HOST,
                    [&](GraphNode& node) { return host_operation(*nodeParams, &node.operation); });
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph) {
  SIM_ENTER();
  const std::shared_ptr<Graph> child = graphs().share(childGraph);
  SIM_REQUIRE(child != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_GRAPH, [&](GraphNode& node) {
    graphs().remove(node.child->handle);
    node.child = child->clone();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  SIM_ENTER();
  return replace_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event) {
  SIM_ENTER();
  return replace_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  SIM_ENTER();
  const GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr, CUDA_ERROR_INVALID_VALUE);
  const bool can = node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMSET ||
                   node->type == CU_GRAPH_NODE_TYPE_MEMCPY;
  SIM_REQUIRE(can, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, node->type, [&](GraphNode& own) {
    own.enabled = isEnabled != 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled) {
  SIM_ENTER();
  const GraphNode* node = graph_nodes().get(hNode);
  SIM_REQUIRE(node != nullptr && isEnabled != nullptr, CUDA_ERROR_INVALID_VALUE);
  return replace_in(hGraphExec, hNode, node->type, [&](const GraphNode& own) {
    *isEnabled = own.enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"

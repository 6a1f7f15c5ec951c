// Node parameters, as the graph functions pass them, to operations and back. Callers: the graph functions.
#pragma once
#include "tools/device/graphs/graph.h"

namespace reprise::sim {

CUresult kernel_operation(Context& context, const CUDA_KERNEL_NODE_PARAMS& parameters, OperationPointer* operation);
CUresult memcpy_operation(Context& context, const CUDA_MEMCPY3D& parameters, OperationPointer* operation);
CUresult memset_operation(const CUDA_MEMSET_NODE_PARAMS& parameters, OperationPointer* operation);
CUresult host_operation(const CUDA_HOST_NODE_PARAMS& parameters, OperationPointer* operation);

// The operation must be of that kind. Pointers in the answer live as long as the node keeps its operation.
CUDA_KERNEL_NODE_PARAMS kernel_parameters(GraphNode& node);
CUDA_MEMCPY3D memcpy_parameters(const GraphNode& node);
CUDA_MEMSET_NODE_PARAMS memset_parameters(const GraphNode& node);

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1& parameters);
CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS& parameters);

// Any kind, as cuGraphAddNode and its kin have it: type and content of a node, without its edges.
CUresult describe(Context& context, CUgraphNodeParams& parameters, GraphNode* node);
CUresult allocate_graph_memory(Context& context, CUDA_MEM_ALLOC_NODE_PARAMS* parameters,
                               std::shared_ptr<GraphMemory>* memory);

}  // namespace reprise::sim

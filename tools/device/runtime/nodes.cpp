// Nodes of graphs: adding them, reading and changing what they do.
#include "tools/device/runtime/boxes.h"
#include "tools/device/runtime/forward.h"

namespace reprise::sim::runtime {
namespace {

template <typename Parameters>
cudaError_t to_driver(const Parameters* node, CUDA_KERNEL_NODE_PARAMS* kernel) {
  *kernel = {};
  if (node == nullptr) return cudaErrorInvalidValue;
  kernel->kern = find_kernel(node->func);
  if (kernel->kern == nullptr) return peek_last_error();
  kernel->gridDimX = node->gridDim.x;
  kernel->gridDimY = node->gridDim.y;
  kernel->gridDimZ = node->gridDim.z;
  kernel->blockDimX = node->blockDim.x;
  kernel->blockDimY = node->blockDim.y;
  kernel->blockDimZ = node->blockDim.z;
  kernel->sharedMemBytes = node->sharedMemBytes;
  kernel->kernelParams = node->kernelParams;
  kernel->extra = node->extra;
  return cudaSuccess;
}

cudaKernelNodeParams from_driver(const CUDA_KERNEL_NODE_PARAMS& kernel) {
  return {const_cast<void*>(host_function_of(kernel.kern)),
          {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
          {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
          kernel.sharedMemBytes,
          kernel.kernelParams,
          kernel.extra};
}

// The context that nodes of this thread run in.
cudaError_t current_context(CUcontext* context) {
  if (const cudaError_t error = ensure_context(); error != cudaSuccess) return error;
  return static_cast<cudaError_t>(driver()->cuCtxGetCurrent(context));
}

// Kernels by handle, and copies as the driver describes them; all else has one layout in both interfaces.
cudaError_t to_driver(const cudaGraphNodeParams* node, CUgraphNodeParams* to) {
  static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
  if (node == nullptr) return cudaErrorInvalidValue;
  *to = std::bit_cast<CUgraphNodeParams>(*node);
  if (node->type == cudaGraphNodeTypeKernel) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    if (const cudaError_t error = to_driver(&node->kernel, &kernel); error != cudaSuccess) return error;
    to->kernel = {kernel.func,         kernel.gridDimX,  kernel.gridDimY,  kernel.gridDimZ,
                  kernel.blockDimX,    kernel.blockDimY, kernel.blockDimZ, kernel.sharedMemBytes,
                  kernel.kernelParams, kernel.extra,     kernel.kern,      kernel.ctx};
  }
  if (node->type == cudaGraphNodeTypeMemcpy) {
    if (node->memcpy.flags != 0) return cudaErrorInvalidValue;
    to->memcpy = {};
    return to_box(&node->memcpy.copyParams, &to->memcpy.copyParams);
  }
  if (node->type == cudaGraphNodeTypeMemset) to->memset.ctx = nullptr;
  return cudaSuccess;
}

struct Place {
  cudaGraphNode_t* node;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
};

cudaError_t add_copy(const Place& at, cudaError_t described, const CUDA_MEMCPY3D& box) {
  CUcontext context = nullptr;
  if (described == cudaSuccess) described = current_context(&context);
  if (described != cudaSuccess) return remember(described);
  return call(&Driver::cuGraphAddMemcpyNode, at.node, at.graph, at.dependencies, at.count, &box, context);
}

cudaError_t set_copy(cudaGraphNode_t node, cudaError_t described, const CUDA_MEMCPY3D& box) {
  if (described != cudaSuccess) return remember(described);
  return call(&Driver::cuGraphMemcpyNodeSetParams, node, &box);
}

cudaError_t set_copy(cudaGraphExec_t executable, cudaGraphNode_t node, cudaError_t described,
                     const CUDA_MEMCPY3D& box) {
  CUcontext context = nullptr;
  if (described == cudaSuccess) described = current_context(&context);
  if (described != cudaSuccess) return remember(described);
  return call(&Driver::cuGraphExecMemcpyNodeSetParams, executable, node, &box, context);
}

cudaError_t from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                        CUDA_MEMCPY3D* box) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : to_box(to, place, bytes, kind, box);
}

cudaError_t to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind,
                      CUDA_MEMCPY3D* box) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : to_box(place, from, bytes, kind, box);
}

}  // namespace
}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters) {
  CUgraphNodeParams described;
  if (const cudaError_t error = to_driver(parameters, &described); error != cudaSuccess) return remember(error);
  const cudaError_t error = forward(&Driver::cuGraphAddNode_v2, node, graph, dependencies, edges, count, &described);
  if (error == cudaSuccess && parameters->type == cudaGraphNodeTypeMemAlloc) {
    parameters->alloc.dptr = reinterpret_cast<void*>(described.alloc.dptr);
  }
  return error;
}
cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* parameters) {
  CUgraphNodeParams described;
  if (const cudaError_t error = to_driver(parameters, &described); error != cudaSuccess) return remember(error);
  return call(&Driver::cuGraphNodeSetParams, node, &described);
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                       cudaGraphNodeParams* parameters) {
  CUgraphNodeParams described;
  if (const cudaError_t error = to_driver(parameters, &described); error != cudaSuccess) return remember(error);
  return call(&Driver::cuGraphExecNodeSetParams, executable, node, &described);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (const cudaError_t error = to_driver(parameters, &kernel); error != cudaSuccess) return remember(error);
  return call(&Driver::cuGraphAddKernelNode_v2, node, graph, dependencies, count, &kernel);
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters) {
  if (parameters == nullptr) return remember(cudaErrorInvalidValue);
  CUDA_KERNEL_NODE_PARAMS kernel;
  const cudaError_t error = call(&Driver::cuGraphKernelNodeGetParams_v2, node, &kernel);
  if (error == cudaSuccess) *parameters = from_driver(kernel);
  return error;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (const cudaError_t error = to_driver(parameters, &kernel); error != cudaSuccess) return remember(error);
  return call(&Driver::cuGraphKernelNodeSetParams_v2, node, &kernel);
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (const cudaError_t error = to_driver(parameters, &kernel); error != cudaSuccess) return remember(error);
  return call(&Driver::cuGraphExecKernelNodeSetParams_v2, executable, node, &kernel);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(copy, &box);
  return add_copy({node, graph, dependencies, count}, described, box);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(to, from, bytes, kind, &box);
  return add_copy({node, graph, dependencies, count}, described, box);
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, size_t count, void* to,
                                             const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = from_symbol(to, symbol, bytes, offset, kind, &box);
  return add_copy({node, graph, dependencies, count}, described, box);
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t graph,
                                           const cudaGraphNode_t* dependencies, size_t count, const void* symbol,
                                           const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_symbol(symbol, from, bytes, offset, kind, &box);
  return add_copy({node, graph, dependencies, count}, described, box);
}
cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return remember(cudaErrorInvalidValue);
  CUDA_MEMCPY3D box;
  const cudaError_t error = call(&Driver::cuGraphMemcpyNodeGetParams, node, &box);
  if (error == cudaSuccess) *copy = from_box(box);
  return error;
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(copy, &box);
  return set_copy(node, described, box);
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(to, from, bytes, kind, &box);
  return set_copy(node, described, box);
}
cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* to, const void* symbol, size_t bytes,
                                                   size_t offset, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = from_symbol(to, symbol, bytes, offset, kind, &box);
  return set_copy(node, described, box);
}
cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* from,
                                                 size_t bytes, size_t offset, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_symbol(symbol, from, bytes, offset, kind, &box);
  return set_copy(node, described, box);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(copy, &box);
  return set_copy(executable, node, described, box);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_box(to, from, bytes, kind, &box);
  return set_copy(executable, node, described, box);
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t bytes, size_t offset,
                                                       cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = from_symbol(to, symbol, bytes, offset, kind, &box);
  return set_copy(executable, node, described, box);
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                     const void* symbol, const void* from, size_t bytes, size_t offset,
                                                     cudaMemcpyKind kind) {
  CUDA_MEMCPY3D box;
  const cudaError_t described = to_symbol(symbol, from, bytes, offset, kind, &box);
  return set_copy(executable, node, described, box);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* fill) {
  CUcontext context = nullptr;
  if (const cudaError_t error = current_context(&context); error != cudaSuccess) return remember(error);
  return forward(&Driver::cuGraphAddMemsetNode, node, graph, dependencies, count, fill, context);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* fill) {
  CUcontext context = nullptr;
  if (const cudaError_t error = current_context(&context); error != cudaSuccess) return remember(error);
  return forward(&Driver::cuGraphExecMemsetNodeSetParams, executable, node, fill, context);
}

}  // extern "C"

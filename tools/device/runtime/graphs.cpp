// Graphs as a whole: their nodes and edges, instances, and objects that they keep.
#include "tools/device/runtime/forward.h"

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) { return call(&Driver::cuGraphCreate, graph, flags); }
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) { return call(&Driver::cuGraphClone, clone, graph); }
cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return call(&Driver::cuGraphDestroy, graph); }
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call(&Driver::cuGraphGetNodes, graph, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call(&Driver::cuGraphGetRootNodes, graph, nodes, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return forward(&Driver::cuGraphGetEdges_v2, graph, from, to, edges, count);
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  return forward(&Driver::cuGraphAddDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count) {
  return forward(&Driver::cuGraphRemoveDependencies_v2, graph, from, to, edges, count);
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return forward(&Driver::cuGraphNodeGetDependencies_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return forward(&Driver::cuGraphNodeGetDependentNodes_v2, node, nodes, edges, count);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return forward(&Driver::cuGraphNodeGetType, node, type);
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  return call(&Driver::cuGraphNodeFindInClone, found, original, clone);
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return call(&Driver::cuGraphDestroyNode, node); }
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned enabled) {
  return call(&Driver::cuGraphNodeSetEnabled, executable, node, enabled);
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned* enabled) {
  return call(&Driver::cuGraphNodeGetEnabled, executable, node, enabled);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return call(&Driver::cuGraphInstantiateWithFlags, executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* parameters) {
  return forward(&Driver::cuGraphInstantiateWithParams, executable, graph, parameters);
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* executable, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* parameters) {
  if (parameters == nullptr) return remember(cudaErrorInvalidValue);
  const cudaStream_t stream = parameters->uploadStream;
  parameters->uploadStream = per_thread(stream);
  const cudaError_t error = cudaGraphInstantiateWithParams(executable, graph, parameters);
  parameters->uploadStream = stream;
  return error;
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags) {
  return forward(&Driver::cuGraphExecGetFlags, executable, flags);
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return call(&Driver::cuGraphLaunch, executable, stream);
}
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
  return cudaGraphLaunch(executable, per_thread(stream));
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream) {
  return call(&Driver::cuGraphUpload, executable, stream);
}
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t executable, cudaStream_t stream) {
  return cudaGraphUpload(executable, per_thread(stream));
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return forward(&Driver::cuGraphExecUpdate_v2, executable, graph, info);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return call(&Driver::cuGraphExecDestroy, executable); }

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned references,
                                 unsigned flags) {
  return call(&Driver::cuUserObjectCreate, object, pointer, destroy, references, flags);
}
cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned count) {
  return call(&Driver::cuUserObjectRetain, object, count);
}
cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned count) {
  return call(&Driver::cuUserObjectRelease, object, count);
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags) {
  return call(&Driver::cuGraphRetainUserObject, graph, object, count, flags);
}
cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned count) {
  return call(&Driver::cuGraphReleaseUserObject, graph, object, count);
}

}  // extern "C"

// Graphs as a whole: their nodes and edges, instances, and objects that they keep.
#include "tools/device/runtime/forward.h"

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
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

}  // extern "C"

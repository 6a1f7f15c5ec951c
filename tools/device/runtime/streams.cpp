// Streams and events, where a call is more than a row of forwards.def.
#include "tools/device/runtime/forward.h"

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags) {
  // The results that callbacks are given have the same numbers in both interfaces.
  return call(&Driver::cuStreamAddCallback, stream, reinterpret_cast<CUstreamCallback>(callback), data, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

}  // extern "C"

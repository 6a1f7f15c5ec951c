// Copies of boxes: how the runtime describes them, and how the driver does. Callers: copies of memory, graph nodes.
#pragma once
#include "tools/device/runtime/runtime.h"

namespace reprise::sim::runtime {

// Arrays are not simulated: cudaErrorNotSupported. What cuda_runtime_api.h calls an error is one.
cudaError_t to_box(const cudaMemcpy3DParms* copy, CUDA_MEMCPY3D* box);
cudaError_t to_peer_box(const cudaMemcpy3DPeerParms* copy, CUDA_MEMCPY3D_PEER* box);
cudaError_t to_box(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUDA_MEMCPY3D* box);
cudaMemcpy3DParms from_box(const CUDA_MEMCPY3D& box);

}  // namespace reprise::sim::runtime

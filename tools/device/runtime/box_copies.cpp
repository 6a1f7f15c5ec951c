// Copies and fills of boxes, batches of copies, and where managed memory is to be.
#include "tools/device/runtime/boxes.h"
#include "tools/device/runtime/forward.h"

namespace reprise::sim::runtime {
namespace {

cudaError_t copy_box(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  CUDA_MEMCPY3D box;
  if (const cudaError_t error = to_box(copy, &box); error != cudaSuccess) return remember(error);
  return call(&Driver::cuMemcpy3DAsync_v2, &box, stream);
}

cudaError_t copy_peer_box(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  CUDA_MEMCPY3D_PEER box;
  if (const cudaError_t error = to_peer_box(copy, &box); error != cudaSuccess) return remember(error);
  return call(&Driver::cuMemcpy3DPeerAsync, &box, stream);
}

cudaError_t wait_for(cudaError_t submitted, cudaStream_t stream) {
  return submitted != cudaSuccess ? submitted : call(&Driver::cuStreamSynchronize, stream);
}

// A plane at a time where there are more rows between planes than in one; fill(address, pitch, value, width, height).
template <typename Fill>
cudaError_t fill_box(const cudaPitchedPtr& memory, int value, const cudaExtent& extent, Fill fill) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return remember(ensure_context());
  const auto byte = static_cast<unsigned char>(value);
  const CUdeviceptr address = address_of(memory.ptr);
  if (memory.ysize == extent.height || extent.depth == 1) {
    return fill(address, memory.pitch, byte, extent.width, extent.height * extent.depth);
  }
  if (memory.ysize < extent.height) return remember(cudaErrorInvalidValue);
  for (size_t plane = 0; plane < extent.depth; ++plane) {
    const CUdeviceptr at = address + plane * memory.ysize * memory.pitch;
    if (const cudaError_t error = fill(at, memory.pitch, byte, extent.width, extent.height); error != cudaSuccess) {
      return error;
    }
  }
  return cudaSuccess;
}

}  // namespace
}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  if (memory == nullptr) return remember(cudaErrorInvalidValue);
  *memory = {nullptr, 0, extent.width, extent.height};
  return call(&Driver::cuMemAllocPitch_v2, reinterpret_cast<CUdeviceptr*>(&memory->ptr), &memory->pitch, extent.width,
              extent.height * extent.depth, 4u);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  CUDA_MEMCPY3D box;
  if (const cudaError_t error = to_box(copy, &box); error != cudaSuccess) return remember(error);
  return call(&Driver::cuMemcpy3D_v2, &box);
}
cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* copy) {
  return wait_for(copy_box(copy, cudaStreamPerThread), cudaStreamPerThread);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) { return copy_box(copy, stream); }
cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  return copy_box(copy, per_thread(stream));
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy) {
  CUDA_MEMCPY3D_PEER box;
  if (const cudaError_t error = to_peer_box(copy, &box); error != cudaSuccess) return remember(error);
  return call(&Driver::cuMemcpy3DPeer, &box);
}
cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* copy) {
  return wait_for(copy_peer_box(copy, cudaStreamPerThread), cudaStreamPerThread);
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  return copy_peer_box(copy, stream);
}
cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  return copy_peer_box(copy, per_thread(stream));
}

cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return fill_box(memory, value, extent, [](auto... what) { return call(&Driver::cuMemsetD2D8_v2, what...); });
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
  return fill_box(memory, value, extent,
                  [stream](auto... what) { return call(&Driver::cuMemsetD2D8Async, what..., stream); });
}
cudaError_t cudaMemset3D_ptds(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return cudaMemset3DAsync(memory, value, extent, cudaStreamPerThread);
}

cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attributes, size_t* first_of, size_t attribute_count,
                                 cudaStream_t stream) {
  static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));
  return call(&Driver::cuMemcpyBatchAsync_v2, reinterpret_cast<CUdeviceptr*>(const_cast<void**>(to)),
              reinterpret_cast<CUdeviceptr*>(const_cast<void**>(from)), const_cast<size_t*>(sizes), count,
              reinterpret_cast<CUmemcpyAttributes*>(attributes), first_of, attribute_count, stream);
}

}  // extern "C"

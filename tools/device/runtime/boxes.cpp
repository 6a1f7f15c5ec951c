#include "tools/device/runtime/boxes.h"

namespace reprise::sim::runtime {
namespace {

bool is_kind(cudaMemcpyKind kind) { return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault; }

CUmemorytype source_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUmemorytype destination_type(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return CU_MEMORYTYPE_UNIFIED;
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// What both descriptions of a box have under the same names.
template <typename Copy, typename Box>
cudaError_t set_box(const Copy& copy, Box* box) {
  if (copy.srcArray != nullptr || copy.dstArray != nullptr) {
    const bool twice = (copy.srcArray != nullptr && copy.srcPtr.ptr != nullptr) ||
                       (copy.dstArray != nullptr && copy.dstPtr.ptr != nullptr);
    return twice ? cudaErrorInvalidValue : cudaErrorNotSupported;
  }
  box->srcXInBytes = copy.srcPos.x;
  box->srcY = copy.srcPos.y;
  box->srcZ = copy.srcPos.z;
  box->srcHost = copy.srcPtr.ptr;
  box->srcDevice = address_of(copy.srcPtr.ptr);
  box->srcPitch = copy.srcPtr.pitch;
  box->srcHeight = copy.srcPtr.ysize;
  box->dstXInBytes = copy.dstPos.x;
  box->dstY = copy.dstPos.y;
  box->dstZ = copy.dstPos.z;
  box->dstHost = copy.dstPtr.ptr;
  box->dstDevice = address_of(copy.dstPtr.ptr);
  box->dstPitch = copy.dstPtr.pitch;
  box->dstHeight = copy.dstPtr.ysize;
  box->WidthInBytes = copy.extent.width;
  box->Height = copy.extent.height;
  box->Depth = copy.extent.depth;
  return cudaSuccess;
}

}  // namespace

cudaError_t to_box(const cudaMemcpy3DParms* copy, CUDA_MEMCPY3D* box) {
  *box = {};
  if (copy == nullptr) return cudaErrorInvalidValue;
  if (!is_kind(copy->kind)) return cudaErrorInvalidMemcpyDirection;
  box->srcMemoryType = source_type(copy->kind);
  box->dstMemoryType = destination_type(copy->kind);
  return set_box(*copy, box);
}

cudaError_t to_peer_box(const cudaMemcpy3DPeerParms* copy, CUDA_MEMCPY3D_PEER* box) {
  *box = {};
  if (copy == nullptr) return cudaErrorInvalidValue;
  box->srcMemoryType = CU_MEMORYTYPE_DEVICE;
  box->dstMemoryType = CU_MEMORYTYPE_DEVICE;
  if (const cudaError_t error = primary_context(copy->srcDevice, &box->srcContext); error != cudaSuccess) return error;
  if (const cudaError_t error = primary_context(copy->dstDevice, &box->dstContext); error != cudaSuccess) return error;
  return set_box(*copy, box);
}

cudaError_t to_box(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUDA_MEMCPY3D* box) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  copy.dstPtr = {to, bytes, bytes, 1};
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return to_box(&copy, box);
}

cudaMemcpy3DParms from_box(const CUDA_MEMCPY3D& box) {
  const bool from_host = box.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = box.dstMemoryType == CU_MEMORYTYPE_HOST;
  cudaMemcpy3DParms copy = {};
  copy.srcPos = {box.srcXInBytes, box.srcY, box.srcZ};
  copy.srcPtr = {from_host ? const_cast<void*>(box.srcHost) : reinterpret_cast<void*>(box.srcDevice), box.srcPitch,
                 box.WidthInBytes, box.srcHeight};
  copy.dstPos = {box.dstXInBytes, box.dstY, box.dstZ};
  copy.dstPtr = {to_host ? box.dstHost : reinterpret_cast<void*>(box.dstDevice), box.dstPitch, box.WidthInBytes,
                 box.dstHeight};
  copy.extent = {box.WidthInBytes, box.Height, box.Depth};
  const bool any = box.srcMemoryType == CU_MEMORYTYPE_UNIFIED || box.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  copy.kind = any         ? cudaMemcpyDefault
              : from_host ? (to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                          : (to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice);
  return copy;
}

}  // namespace reprise::sim::runtime

// Memory: device, pinned and managed allocations, copies, fills, pools, and what a pointer is.
#include "tools/device/runtime/runtime.h"

namespace reprise::sim::runtime {
namespace {

CUdeviceptr* as_address(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&Driver::cuMemcpyHtoD_v2, address_of(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return call(&Driver::cuMemcpyDtoH_v2, to, address_of(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return call(&Driver::cuMemcpyDtoD_v2, address_of(to), address_of(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return call(&Driver::cuMemcpy, address_of(to), address_of(from), bytes);
  }
  return remember(cudaErrorInvalidMemcpyDirection);
}

cudaError_t copy_async(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return call(&Driver::cuMemcpyHtoDAsync_v2, address_of(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return call(&Driver::cuMemcpyDtoHAsync_v2, to, address_of(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return call(&Driver::cuMemcpyDtoDAsync_v2, address_of(to), address_of(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return call(&Driver::cuMemcpyAsync, address_of(to), address_of(from), bytes, stream);
  }
  return remember(cudaErrorInvalidMemcpyDirection);
}

// Synchronous copies of programs with per-thread default streams.
cudaError_t copy_and_wait(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t error = copy_async(to, from, bytes, kind, cudaStreamPerThread);
  return error != cudaSuccess ? error : call(&Driver::cuStreamSynchronize, cudaStreamPerThread);
}

CUDA_MEMCPY2D rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   cudaMemcpyKind kind) {
  const bool any = kind == cudaMemcpyDefault;
  const bool from_host = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost;
  const bool to_host = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost;
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = any ? CU_MEMORYTYPE_UNIFIED : from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = any ? CU_MEMORYTYPE_UNIFIED : to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  copy.srcHost = from;
  copy.srcDevice = address_of(from);
  copy.srcPitch = from_pitch;
  copy.dstHost = to;
  copy.dstDevice = address_of(to);
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

}  // namespace
}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (bytes == 0) return remember(ensure_context());  // the runtime allows it, the driver does not
  return call(&Driver::cuMemAlloc_v2, as_address(pointer), bytes);
}
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return remember(ensure_context());
  return call(&Driver::cuMemFree_v2, address_of(pointer));
}
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call(&Driver::cuMemAllocPitch_v2, as_address(pointer), pitch, width, height, 4u);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return cudaHostAlloc(pointer, bytes, 0); }
cudaError_t cudaFreeHost(void* pointer) {
  return pointer == nullptr ? cudaSuccess : call(&Driver::cuMemFreeHost, pointer);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy(to, from, bytes, kind);
}
cudaError_t cudaMemcpy_ptds(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copy_and_wait(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_async(to, from, bytes, kind, stream);
}
cudaError_t cudaMemcpyAsync_ptsz(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_async(to, from, bytes, kind, per_thread(stream));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  const CUDA_MEMCPY2D copy = rows(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2DUnaligned_v2, &copy);
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  const CUDA_MEMCPY2D copy = rows(to, to_pitch, from, from_pitch, width, height, kind);
  return call(&Driver::cuMemcpy2DAsync_v2, &copy, stream);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  // Unified addressing: the pointers name their devices.
  (void)to_device;
  (void)from_device;
  return copy_async(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  (void)to_device;
  (void)from_device;
  return copy(to, from, bytes, cudaMemcpyDefault);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy(place, from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy(to, place, bytes, kind);
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy_async(place, from, bytes, kind, stream);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy_async(to, place, bytes, kind, stream);
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return call(&Driver::cuMemsetD8_v2, address_of(pointer), static_cast<unsigned char>(value), bytes);
}
cudaError_t cudaMemset_ptds(void* pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, cudaStreamPerThread);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return call(&Driver::cuMemsetD8Async, address_of(pointer), static_cast<unsigned char>(value), bytes, stream);
}
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return call(&Driver::cuMemsetD2D8_v2, address_of(pointer), pitch, static_cast<unsigned char>(value), width, height);
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call(&Driver::cuMemsetD2D8Async, address_of(pointer), pitch, static_cast<unsigned char>(value), width, height,
              stream);
}

// The same for programs with per-thread default streams.
cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy_and_wait(place, from, bytes, kind);
}
cudaError_t cudaMemcpyFromSymbol_ptds(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
  void* place = nullptr;
  const cudaError_t error = symbol_place(symbol, bytes, offset, &place);
  return error != cudaSuccess ? error : copy_and_wait(to, place, bytes, kind);
}
cudaError_t cudaMemcpy2D_ptds(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, cudaStreamPerThread);
  return error != cudaSuccess ? error : call(&Driver::cuStreamSynchronize, cudaStreamPerThread);
}
cudaError_t cudaMemset2D_ptds(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(pointer, pitch, value, width, height, cudaStreamPerThread);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  unsigned type = 0;
  unsigned managed = 0;
  int device = cudaInvalidDeviceId;
  *attributes = {};
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* answers[] = {&type, &managed, &device, &attributes->devicePointer, &attributes->hostPointer};
  const cudaError_t error = call(&Driver::cuPointerGetAttributes, 5u, asked, answers, address_of(pointer));
  if (error != cudaSuccess) return error;
  attributes->device = device;
  attributes->type = managed != 0                   ? cudaMemoryTypeManaged
                     : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                     : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                                    : cudaMemoryTypeUnregistered;
  if (attributes->type == cudaMemoryTypeUnregistered) {
    attributes->device = cudaInvalidDeviceId;
    attributes->hostPointer = const_cast<void*>(pointer);
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return call_without_context(&Driver::cuDeviceGetGraphMemAttribute, device,
                              static_cast<CUgraphMem_attribute>(attribute), value);
}
cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return call_without_context(&Driver::cuDeviceSetGraphMemAttribute, device,
                              static_cast<CUgraphMem_attribute>(attribute), value);
}

}  // extern "C"

#include "tools/device/api/newer.h"

#include "tools/device/streams/stream.h"

namespace reprise::sim {

CUresult copy_with_attributes(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUmemcpyAttributes* attributes,
                              CUstream stream) {
  return attributes == nullptr ? CUDA_ERROR_INVALID_VALUE : cuMemcpyAsync(destination, source, bytes, stream);
}

CUresult copy_with_attributes_ptsz(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
                                   CUmemcpyAttributes* attributes, CUstream stream) {
  const PerThreadDefault scope(__builtin_return_address(0));
  return copy_with_attributes(destination, source, bytes, attributes, stream);
}

}  // namespace reprise::sim

// The functions of newer.def. Callers: the simulated driver's cuGetProcAddress.
#pragma once
#include "tools/device/base/cuda_api.h"

namespace reprise::sim {

// cuMemcpyWithAttributesAsync of CUDA 13.2: a copy of one range with the attributes of a batch. They are hints, which
// this device has no use for.
CUresult copy_with_attributes(CUdeviceptr destination, CUdeviceptr source, size_t bytes, CUmemcpyAttributes* attributes,
                              CUstream stream);
CUresult copy_with_attributes_ptsz(CUdeviceptr destination, CUdeviceptr source, size_t bytes,
                                   CUmemcpyAttributes* attributes, CUstream stream);

}  // namespace reprise::sim

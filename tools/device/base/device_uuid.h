// The number that each simulated device has among all devices there are: CUDA and NVML know it by that. Callers: the
// driver, NVML.
#pragma once
#include <cstring>

#include "tools/device/base/cuda_api.h"

namespace reprise::sim {

inline CUuuid device_uuid(int device) noexcept {
  CUuuid uuid;
  std::memcpy(uuid.bytes, "reprise-sim-dev", sizeof uuid.bytes);
  uuid.bytes[15] = static_cast<char>(device);
  return uuid;
}

}  // namespace reprise::sim

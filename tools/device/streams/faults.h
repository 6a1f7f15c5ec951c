// Faults that a test asked for (repriseSimInjectFault, REPRISE_SIM_FAIL). Callers: enter.cpp for calls,
// modules/launch.cpp and api/streams/launch_api.cpp for kernels.
#pragma once
#include <string>

#include "tools/device/base/cuda_api.h"

namespace reprise::sim {

// CUDA_SUCCESS unless the next kernel shall fail.
CUresult next_execution_fault() noexcept;

// The code that this launch of `kernel` shall answer ("launch-of-NAME"): CUDA_SUCCESS mostly.
CUresult launch_fault(const std::string& kernel);

// The code that this call of `function`, which returns to `caller`, shall answer: CUDA_SUCCESS mostly.
CUresult take_fault(const char* function, const void* caller) noexcept;

}  // namespace reprise::sim

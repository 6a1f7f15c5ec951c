// Faults that a test asked for (control.h). Callers: enter.cpp for calls, the compute engine for kernels.
#pragma once
#include "tools/sim/base/cuda_api.h"

namespace reprise::sim {

// CUDA_SUCCESS unless the next kernel shall fail.
CUresult next_execution_fault() noexcept;

// The code that this call of `function` shall answer, CUDA_SUCCESS mostly.
CUresult take_fault(const char* function) noexcept;

}  // namespace reprise::sim

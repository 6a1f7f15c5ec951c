// cuda.h with every version of every function declared (nothing renamed by macros) and exported. All parts of the
// simulated driver include this instead of cuda.h.
#pragma once
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>

#include "tools/device/base/profiler_api.h"
#pragma GCC visibility pop

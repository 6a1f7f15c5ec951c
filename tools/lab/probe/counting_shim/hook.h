// What every hook of the counting shim is written with: how it is exported, and how it gets the driver's own function.
// A file of hooks first includes cuda.h with every version under its own name. Callers: shim, memory_calls.
#pragma once
#include <cuda.h>

#include "tools/lab/probe/counting_shim/real.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))
// The real function of the enclosing wrapper's name; answers for a driver that lacks it.
#define REAL(name)                                                                  \
  static const auto real_function = reprise::count::real<decltype(&::name)>(#name); \
  if (!real_function) return CUDA_ERROR_NOT_FOUND

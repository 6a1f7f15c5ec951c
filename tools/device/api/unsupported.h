// The answer of functions that are not implemented. Caller: stubs.cpp; stats.cpp defines it.
#pragma once
#include <cstdint>

namespace reprise::sim {

// Says so on stderr (once per function), counts it, aborts under REPRISE_SIM_STRICT. Returns CUDA_ERROR_NOT_SUPPORTED.
int unsupported(const char* function) noexcept;
uint64_t unsupported_calls() noexcept;

}  // namespace reprise::sim

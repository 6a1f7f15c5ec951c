// The answer of functions that the simulated device does not have. Caller: entries.cpp.
#pragma once

namespace reprise::sim::runtime {

// Says so on stderr, where `told` is not set yet, and keeps the error for cudaGetLastError. Returns
// cudaErrorNotSupported.
int unsupported(const char* function, bool& told) noexcept;

}  // namespace reprise::sim::runtime

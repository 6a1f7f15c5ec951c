// The answer of functions that the simulated cuBLAS does not have. Callers: entries.cpp of both libraries, which know
// no header of cuBLAS.
#pragma once

namespace reprise::sim::blas {

// Says so on stderr, once for each function. Returns CUBLAS_STATUS_NOT_SUPPORTED.
int unsupported(const char* function);

}  // namespace reprise::sim::blas

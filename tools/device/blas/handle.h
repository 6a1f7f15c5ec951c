// What a cublasHandle_t stands for. It may be used as a cublasLtHandle_t, as cuBLAS documents. Callers: the entry
// points of both libraries.
#pragma once
#include <cublas_v2.h>

#include <cstdint>

namespace reprise::sim::blas {

inline constexpr uint64_t kHandleMark = 0x52657072426c6173;

struct Handle {
  uint64_t mark = kHandleMark;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics = CUBLAS_ATOMICS_NOT_ALLOWED;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  int multiprocessors = 0;
};

// nullptr: no handle of ours.
inline Handle* find_handle(const void* handle) {
  auto* found = static_cast<Handle*>(const_cast<void*>(handle));
  return found != nullptr && found->mark == kHandleMark ? found : nullptr;
}

}  // namespace reprise::sim::blas

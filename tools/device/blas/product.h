// A matrix product as one launch: D = alpha op(A) op(B) + beta C, with bias and epilogue. Callers: the entry points of
// libcublas.so.13 (gemm, vectors) and libcublasLt.so.13 (lt_matmul).
#pragma once
#include <cublas_v2.h>

#include "tools/device/blas/types.h"

namespace reprise::sim::blas {

inline constexpr char kProductKernel[] = "reprise_blas_product";

// Steps in elements. `at`: on the device; with tables a table of addresses there.
struct Matrix {
  const void* at = nullptr;
  int64_t row = 1;
  int64_t column = 0;
  int64_t matrix = 0;
  cudaDataType_t type = CUDA_R_32F;
};

// op(M) of a column-major matrix.
inline Matrix column_major(cublasOperation_t operation, const void* at, cudaDataType_t type, int64_t leading,
                           int64_t matrix = 0) {
  if (operation == CUBLAS_OP_N) return {at, 1, leading, matrix, type};
  return {at, leading, 1, matrix, type};
}

struct Product {
  Matrix a;
  Matrix b;
  Matrix c;  // where it is null, beta must be zero
  Matrix d;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  bool tables = false;
  bool conjugate_a = false;
  bool conjugate_b = false;
  const void* alpha = nullptr;
  const void* beta = nullptr;
  bool scalars_on_device = false;
  cudaDataType_t scale_type = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  uint32_t math = 0;
  uint32_t epilogue = 0;
  uint32_t algorithm = 0;
  int multiprocessors = 0;
  const void* bias = nullptr;
  int64_t bias_matrix = 0;
  void* workspace = nullptr;
  uint64_t workspace_bytes = 0;
};

// Whether products of these types are documented, and ours.
bool is_supported(cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t ab, cudaDataType_t cd);

// Asks for the kernel and so for a context, once. The reason why it cannot be had is said on stderr, once.
cublasStatus_t ensure_kernel();

// Checks nothing but that the types are supported. Nothing is launched for a product without elements.
cublasStatus_t launch(const Product& product, cudaStream_t stream);

// Says on stderr, once for each text, what is not supported, and answers so.
cublasStatus_t not_supported(const char* what);

}  // namespace reprise::sim::blas

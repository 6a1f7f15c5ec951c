// Products of matrices, one by one and in batches.
#include <algorithm>

#include "tools/device/blas/handle.h"
#include "tools/device/blas/product.h"

namespace reprise::sim::blas {
namespace {

struct Types {
  cudaDataType_t a;
  cudaDataType_t b;
  cudaDataType_t c;
  cublasComputeType_t compute;
};

// How a function computes that has no compute type of its own.
Types same_types(cudaDataType_t type) {
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  if (type == CUDA_R_16F) return {type, type, type, CUBLAS_COMPUTE_16F};
  return {type, type, type, is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F};
}

// Of alpha and beta: what the product is computed in, complex where C is. False: there is no such product.
bool scale_type_of(const Types& types, cudaDataType_t& scale) {
  for (const cudaDataType_t candidate : {CUDA_R_16F, CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F, CUDA_R_32I}) {
    if (!is_supported(types.compute, candidate, types.a, types.c)) continue;
    scale = candidate;
    return true;
  }
  return false;
}

struct Shape {
  cublasOperation_t op_a;
  cublasOperation_t op_b;
  int m;
  int n;
  int k;
};

struct Batch {
  long long a = 0;
  long long b = 0;
  long long c = 0;
  int count = 1;
  bool tables = false;
};

bool is_operation(cublasOperation_t operation) {
  return operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
}

// The errors that cuBLAS documents for arguments alone.
bool is_valid(const Shape& shape, int lda, int ldb, int ldc, const Batch& batch) {
  if (!is_operation(shape.op_a) || !is_operation(shape.op_b)) return false;
  if (shape.m < 0 || shape.n < 0 || shape.k < 0 || batch.count < 0) return false;
  const int rows_a = shape.op_a == CUBLAS_OP_N ? shape.m : shape.k;
  const int rows_b = shape.op_b == CUBLAS_OP_N ? shape.k : shape.n;
  return lda >= std::max(1, rows_a) && ldb >= std::max(1, rows_b) && ldc >= std::max(1, shape.m);
}

struct Operands {
  const void* alpha;
  const void* a;
  int lda;
  const void* b;
  int ldb;
  const void* beta;
  void* c;
  int ldc;
};

cublasStatus_t gemm(cublasHandle_t handle, const Shape& shape, const Operands& with, const Types& types,
                    const Batch& batch = {}) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_valid(shape, with.lda, with.ldb, with.ldc, batch)) return CUBLAS_STATUS_INVALID_VALUE;
  if (with.alpha == nullptr || with.beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (with.c == nullptr && shape.m > 0 && shape.n > 0 && batch.count > 0) return CUBLAS_STATUS_INVALID_VALUE;
  Product product;
  if (types.a != types.b || !scale_type_of(types, product.scale_type)) {
    return not_supported("a product of these types");
  }
  product.a = column_major(shape.op_a, with.a, types.a, with.lda, batch.a);
  product.b = column_major(shape.op_b, with.b, types.b, with.ldb, batch.b);
  product.c = product.d = column_major(CUBLAS_OP_N, with.c, types.c, with.ldc, batch.c);
  product.m = shape.m;
  product.n = shape.n;
  product.k = shape.k;
  product.batch = batch.count;
  product.tables = batch.tables;
  product.conjugate_a = shape.op_a == CUBLAS_OP_C;
  product.conjugate_b = shape.op_b == CUBLAS_OP_C;
  product.alpha = with.alpha;
  product.beta = with.beta;
  product.scalars_on_device = found->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  product.compute = types.compute;
  product.math = found->math;
  product.multiprocessors = found->multiprocessors;
  product.workspace = found->workspace;
  product.workspace_bytes = found->workspace_bytes;
  return launch(product, found->stream);
}

}  // namespace
}  // namespace reprise::sim::blas

using namespace reprise::sim::blas;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t /*algorithm*/) {
  return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, c, ldc}, {a_type, b_type, c_type, compute});
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                                          long long a_stride, const void* b, cudaDataType b_type, int ldb,
                                          long long b_stride, const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t /*algorithm*/) {
  return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, c, ldc}, {a_type, b_type, c_type, compute},
              {a_stride, b_stride, c_stride, batch});
}

cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                                   int k, const void* alpha, const void* const a[], cudaDataType a_type, int lda,
                                   const void* const b[], cudaDataType b_type, int ldb, const void* beta,
                                   void* const c[], cudaDataType c_type, int ldc, int batch,
                                   cublasComputeType_t compute, cublasGemmAlgo_t /*algorithm*/) {
  return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, const_cast<void**>(c), ldc},
              {a_type, b_type, c_type, compute}, {0, 0, 0, batch, true});
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                             const float* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                             cudaDataType b_type, int ldb, const float* beta, void* c, cudaDataType c_type, int ldc) {
  return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, c, ldc},
              {a_type, b_type, c_type, CUBLAS_COMPUTE_32F});
}

#define GEMM(name, type, data_type)                                                                                 \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,   \
                      const type* alpha, const type* a, int lda, const type* b, int ldb, const type* beta, type* c, \
                      int ldc) {                                                                                    \
    return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, c, ldc}, same_types(data_type));       \
  }
#define GEMM_STRIDED(name, type, data_type)                                                                       \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
                      const type* alpha, const type* a, int lda, long long a_stride, const type* b, int ldb,      \
                      long long b_stride, const type* beta, type* c, int ldc, long long c_stride, int batch) {    \
    return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, c, ldc}, same_types(data_type),      \
                {a_stride, b_stride, c_stride, batch});                                                           \
  }
#define GEMM_TABLES(name, type, data_type)                                                                        \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k, \
                      const type* alpha, const type* const a[], int lda, const type* const b[], int ldb,          \
                      const type* beta, type* const c[], int ldc, int batch) {                                    \
    return gemm(handle, {op_a, op_b, m, n, k}, {alpha, a, lda, b, ldb, beta, const_cast<type**>(c), ldc},         \
                same_types(data_type), {0, 0, 0, batch, true});                                                   \
  }
#define GEMV(...)
#define DOT(...)
#include "tools/device/blas/functions.def"

}  // extern "C"

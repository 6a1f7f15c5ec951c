// Products with vectors: a vector is a matrix of one row or column.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tools/device/blas/handle.h"
#include "tools/device/blas/product.h"

namespace reprise::sim::blas {
namespace {

// Steps backwards where the increment is negative: the vector's first element lies at the highest address then.
const void* first_element(const void* vector, int64_t count, int increment, cudaDataType_t type) {
  if (increment >= 0 || count == 0) return vector;
  const int64_t last = (1 - count) * increment;
  return static_cast<const uint8_t*>(vector) + last * number_type(type).bytes();
}

Matrix column_vector(const void* vector, int64_t count, int increment, cudaDataType_t type) {
  return {first_element(vector, count, increment, type), increment, 0, 0, type};
}
Matrix row_vector(const void* vector, int64_t count, int increment, cudaDataType_t type) {
  return {first_element(vector, count, increment, type), 0, increment, 0, type};
}

Product product_for(const Handle& handle, cudaDataType_t type) {
  Product product;
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  product.compute = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
  product.scale_type = type;
  product.math = handle.math;
  product.multiprocessors = handle.multiprocessors;
  product.workspace = handle.workspace;
  product.workspace_bytes = handle.workspace_bytes;
  return product;
}

cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t operation, int m, int n, const void* alpha, const void* a,
                    int lda, const void* x, int x_step, const void* beta, void* y, int y_step, cudaDataType_t type) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool known = operation == CUBLAS_OP_N || operation == CUBLAS_OP_T || operation == CUBLAS_OP_C;
  if (!known || m < 0 || n < 0 || lda < std::max(1, m) || x_step == 0 || y_step == 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (alpha == nullptr || beta == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  Product product = product_for(*found, type);
  product.m = operation == CUBLAS_OP_N ? m : n;
  product.n = 1;
  product.k = operation == CUBLAS_OP_N ? n : m;
  product.a = column_major(operation, a, type, lda);
  product.b = column_vector(x, product.k, x_step, type);
  product.c = product.d = column_vector(y, product.m, y_step, type);
  product.conjugate_a = operation == CUBLAS_OP_C;
  product.alpha = alpha;
  product.beta = beta;
  product.scalars_on_device = found->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  return launch(product, found->stream);
}

cublasStatus_t clear(const Handle& handle, void* result, size_t bytes) {
  if (handle.pointer_mode == CUBLAS_POINTER_MODE_HOST) {
    std::fill_n(static_cast<uint8_t*>(result), bytes, uint8_t{0});
    return CUBLAS_STATUS_SUCCESS;
  }
  return cudaMemsetAsync(result, 0, bytes, handle.stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                         : CUBLAS_STATUS_EXECUTION_FAILED;
}

// The result goes through the device, and is waited for.
cublasStatus_t launch_for_host(Product& product, void* result, size_t bytes, cudaStream_t stream) {
  void* place = nullptr;
  if (cudaMallocAsync(&place, bytes, stream) != cudaSuccess) return CUBLAS_STATUS_ALLOC_FAILED;
  product.c.at = product.d.at = place;
  cublasStatus_t status = launch(product, stream);
  if (status == CUBLAS_STATUS_SUCCESS &&
      (cudaMemcpyAsync(result, place, bytes, cudaMemcpyDeviceToHost, stream) != cudaSuccess ||
       cudaStreamSynchronize(stream) != cudaSuccess)) {
    status = CUBLAS_STATUS_EXECUTION_FAILED;
  }
  cudaFreeAsync(place, stream);
  return status;
}

struct Vector {
  const void* at;
  int step;
  cudaDataType_t type;
};

cublasStatus_t dot(cublasHandle_t handle, int n, const Vector& x, const Vector& y, void* result,
                   cudaDataType_t result_type, cublasComputeType_t compute, bool conjugate) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const size_t bytes = number_type(result_type).bytes();
  if (n <= 0) return clear(*found, result, bytes);
  static constexpr uint64_t kNoScalar[2] = {};
  Product product = product_for(*found, result_type);
  product.compute = compute;
  product.scale_type = compute == CUBLAS_COMPUTE_32F && number_type(result_type).parts == 1 ? CUDA_R_32F : result_type;
  product.m = product.n = 1;
  product.k = n;
  product.a = row_vector(x.at, n, x.step, x.type);
  product.b = column_vector(y.at, n, y.step, y.type);
  product.c = product.d = {result, 1, 1, 0, result_type};
  product.conjugate_a = conjugate;
  product.alpha = product.beta = kNoScalar;
  if (found->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) return launch(product, found->stream);
  return launch_for_host(product, result, bytes, found->stream);
}

cublasComputeType_t computed_in(cudaDataType_t type) {
  return type == CUDA_R_64F || type == CUDA_C_64F ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
}

}  // namespace
}  // namespace reprise::sim::blas

using namespace reprise::sim::blas;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

#define GEMM(...)
#define GEMM_STRIDED(...)
#define GEMM_TABLES(...)
#define GEMV(name, type, data_type)                                                                               \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t operation, int m, int n, const type* alpha,        \
                      const type* a, int lda, const type* x, int x_step, const type* beta, type* y, int y_step) { \
    return gemv(handle, operation, m, n, alpha, a, lda, x, x_step, beta, y, y_step, data_type);                   \
  }
#define DOT(name, type, data_type, conjugate)                                                                        \
  cublasStatus_t name(cublasHandle_t handle, int n, const type* x, int x_step, const type* y, int y_step,            \
                      type* result) {                                                                                \
    return dot(handle, n, {x, x_step, data_type}, {y, y_step, data_type}, result, data_type, computed_in(data_type), \
               conjugate);                                                                                           \
  }
#include "tools/device/blas/functions.def"

cublasStatus_t cublasDotEx(cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int x_step, const void* y,
                           cudaDataType y_type, int y_step, void* result, cudaDataType result_type,
                           cudaDataType execution_type) {
  return dot(handle, n, {x, x_step, x_type}, {y, y_step, y_type}, result, result_type, computed_in(execution_type),
             false);
}

}  // extern "C"

// What works element by element: sums of matrices and vectors, scaling, copies. A copy copies. All else is one launch
// of the product's kernel without a line of either factor: an element of D depends on its element of C, which the
// second scalar multiplies, and on that of the bias, which the first one does.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "tools/device/blas/handle.h"
#include "tools/device/blas/product.h"

namespace reprise::sim::blas {
namespace {

// What is computed, as no two functions may yield the same of the same operands.
enum class Work : uint32_t { sum = 1, sum_of_swapped, added, scaled };

// A matrix of vectors: elements of one, and from one to the next.
struct Elements {
  const void* at;
  int64_t step;
  int64_t vector;
};

Product work_on(const Handle& handle, cudaDataType_t type, Work work) {
  Product product;
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  product.compute = is_double ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
  product.scale_type = product.a.type = product.b.type = product.c.type = product.d.type = type;
  product.n = 1;
  product.algorithm = static_cast<uint32_t>(work);
  product.math = handle.math;
  product.multiprocessors = handle.multiprocessors;
  product.scalars_on_device = handle.pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  return product;
}

Matrix matrix_of(const Elements& elements, cudaDataType_t type) {
  return {elements.at, elements.step, 0, elements.vector, type};
}

bool is_zero_here(const Product& product, const void* scalar) {
  return !product.scalars_on_device && is_zero(static_cast<const uint8_t*>(scalar), number_type(product.scale_type));
}

// D = alpha X + beta Y, where X's elements lie one behind the other.
cublasStatus_t add(Product product, const void* alpha, const Elements& x, const void* beta, const Elements& y,
                   const Elements& d, cudaStream_t stream) {
  product.alpha = alpha;
  product.beta = beta;
  if (!is_zero_here(product, alpha)) product.bias = x.at;
  product.bias_matrix = x.vector;
  product.c = matrix_of(y, product.c.type);
  product.d = matrix_of(d, product.d.type);
  return launch(product, stream);
}

struct Operand {
  const void* at;
  int leading;
  cublasOperation_t operation;
};

bool is_valid(const Operand& operand, int m, int n) {
  const cublasOperation_t operation = operand.operation;
  if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T && operation != CUBLAS_OP_C) return false;
  return operand.leading >= std::max(1, operation == CUBLAS_OP_N ? m : n);
}

// By columns of D, or by its rows.
Elements elements_of(const Operand& operand, bool by_column) {
  const bool along = (operand.operation == CUBLAS_OP_N) == by_column;
  return along ? Elements{operand.at, 1, operand.leading} : Elements{operand.at, operand.leading, 1};
}

cublasStatus_t geam(cublasHandle_t handle, int m, int n, const void* alpha, const Operand& a, const void* beta,
                    const Operand& b, void* c, int ldc, cudaDataType_t type) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !is_valid(a, m, n) || !is_valid(b, m, n) || ldc < std::max(1, m)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (alpha == nullptr || beta == nullptr || (c == nullptr && m > 0 && n > 0)) return CUBLAS_STATUS_INVALID_VALUE;
  const bool by_column = a.operation == CUBLAS_OP_N || b.operation == CUBLAS_OP_N;
  const bool swapped = by_column && a.operation != CUBLAS_OP_N;
  Product product = work_on(*found, type, swapped ? Work::sum_of_swapped : Work::sum);
  product.m = by_column ? m : n;
  product.batch = by_column ? n : m;
  product.conjugate_a = a.operation == CUBLAS_OP_C;
  product.conjugate_b = b.operation == CUBLAS_OP_C;
  const Elements d = elements_of({c, ldc, CUBLAS_OP_N}, by_column);
  const Elements x = elements_of(a, by_column);
  const Elements y = elements_of(b, by_column);
  if (swapped) return add(product, beta, y, alpha, x, d, found->stream);
  return add(product, alpha, x, beta, y, d, found->stream);
}

// Steps backwards where the increment is negative: the vector's first element lies at the highest address then.
Elements vector_of(const void* at, int n, int step, cudaDataType_t type) {
  const int64_t first = step < 0 ? int64_t{1 - n} * step : 0;
  return {static_cast<const uint8_t*>(at) + first * number_type(type).bytes(), step, 0};
}

// Y takes the bias's place, whose elements lie one behind the other: else each is a vector of its own.
cublasStatus_t axpy(cublasHandle_t handle, int n, const void* alpha, const void* x, int x_step, void* y, int y_step,
                    cudaDataType_t type) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  Product product = work_on(*found, type, Work::added);
  Elements from = vector_of(x, n, x_step, type);
  Elements to = vector_of(y, n, y_step, type);
  product.m = n;
  if (y_step != 1) {
    std::swap(product.m, product.batch);
    std::swap(from.step, from.vector);
    std::swap(to.step, to.vector);
  }
  product.alpha = product.beta = alpha;
  product.bias = to.at;
  product.bias_matrix = to.vector;
  product.c = matrix_of(from, type);
  product.d = matrix_of(to, type);
  return launch(product, found->stream);
}

cublasStatus_t scal(cublasHandle_t handle, int n, const void* alpha, void* x, int step, cudaDataType_t type) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (n <= 0 || step <= 0) return CUBLAS_STATUS_SUCCESS;
  Product product = work_on(*found, type, Work::scaled);
  product.m = n;
  product.alpha = product.beta = alpha;
  product.c = product.d = matrix_of(vector_of(x, n, step, type), type);
  return launch(product, found->stream);
}

cublasStatus_t copy(cublasHandle_t handle, int n, const void* x, int x_step, void* y, int y_step, cudaDataType_t type) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (x_step <= 0 || y_step <= 0) return not_supported("a copy of a vector with a step that is not positive");
  const size_t bytes = number_type(type).bytes();
  const auto count = static_cast<size_t>(n);
  const cudaError_t error =
      x_step == 1 && y_step == 1
          ? cudaMemcpyAsync(y, x, bytes * count, cudaMemcpyDeviceToDevice, found->stream)
          : cudaMemcpy2DAsync(y, bytes * static_cast<size_t>(y_step), x, bytes * static_cast<size_t>(x_step), bytes,
                              count, cudaMemcpyDeviceToDevice, found->stream);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace reprise::sim::blas

using namespace reprise::sim::blas;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

#define ELEMENTS(letter, type, data_type)                                                                            \
  cublasStatus_t cublas##letter##geam(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,  \
                                      int n, const type* alpha, const type* a, int lda, const type* beta,            \
                                      const type* b, int ldb, type* c, int ldc) {                                    \
    return geam(handle, m, n, alpha, {a, lda, op_a}, beta, {b, ldb, op_b}, c, ldc, data_type);                       \
  }                                                                                                                  \
  cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t handle, int n, const type* alpha, const type* x, int x_step, \
                                         type* y, int y_step) {                                                      \
    return axpy(handle, n, alpha, x, x_step, y, y_step, data_type);                                                  \
  }                                                                                                                  \
  cublasStatus_t cublas##letter##scal_v2(cublasHandle_t handle, int n, const type* alpha, type* x, int step) {       \
    return scal(handle, n, alpha, x, step, data_type);                                                               \
  }                                                                                                                  \
  cublasStatus_t cublas##letter##copy_v2(cublasHandle_t handle, int n, const type* x, int x_step, type* y,           \
                                         int y_step) {                                                               \
    return copy(handle, n, x, x_step, y, y_step, data_type);                                                         \
  }
ELEMENTS(S, float, CUDA_R_32F)
ELEMENTS(D, double, CUDA_R_64F)
ELEMENTS(C, cuComplex, CUDA_C_32F)
ELEMENTS(Z, cuDoubleComplex, CUDA_C_64F)
#undef ELEMENTS

}  // extern "C"

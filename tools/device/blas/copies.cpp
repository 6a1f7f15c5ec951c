// Vectors and matrices between the host and the device: copies of rows. In a vector a row is one element.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace reprise::sim::blas {
namespace {

struct Rows {
  int64_t count;
  int64_t bytes;  // of each
  int64_t from_step;
  int64_t to_step;
};

bool rows_of_vector(int64_t count, int64_t element, int64_t from_step, int64_t to_step, Rows* rows) {
  if (element <= 0 || from_step <= 0 || to_step <= 0 || count < 0) return false;
  *rows = {count, element, from_step * element, to_step * element};
  return true;
}

bool rows_of_matrix(int64_t height, int64_t width, int64_t element, int64_t from_step, int64_t to_step, Rows* rows) {
  if (height < 0 || width < 0 || element <= 0 || from_step <= 0 || to_step <= 0) return false;
  *rows = {width, height * element, from_step * element, to_step * element};
  return true;
}

// What lies one behind the other is one row.
void join(Rows& rows) {
  if (rows.from_step != rows.bytes || rows.to_step != rows.bytes) return;
  rows.bytes *= rows.count;
  rows.from_step = rows.to_step = rows.bytes;
  rows.count = 1;
}

cublasStatus_t copy(bool valid, Rows rows, void* to, const void* from, cudaMemcpyKind kind,
                    const cudaStream_t* stream) {
  if (!valid) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows.count == 0 || rows.bytes == 0) return CUBLAS_STATUS_SUCCESS;
  join(rows);
  const auto size = [](int64_t value) { return static_cast<size_t>(value); };
  const cudaError_t error = stream == nullptr ? cudaMemcpy2D(to, size(rows.to_step), from, size(rows.from_step),
                                                             size(rows.bytes), size(rows.count), kind)
                                              : cudaMemcpy2DAsync(to, size(rows.to_step), from, size(rows.from_step),
                                                                  size(rows.bytes), size(rows.count), kind, *stream);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace
}  // namespace reprise::sim::blas

using namespace reprise::sim::blas;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

#define COPIES(direction, kind, suffix, size)                                                                      \
  cublasStatus_t cublas##direction##Vector##suffix(size n, size element, const void* x, size x_step, void* y,      \
                                                   size y_step) {                                                  \
    Rows rows{};                                                                                                   \
    return copy(rows_of_vector(n, element, x_step, y_step, &rows), rows, y, x, kind, nullptr);                     \
  }                                                                                                                \
  cublasStatus_t cublas##direction##VectorAsync##suffix(size n, size element, const void* x, size x_step, void* y, \
                                                        size y_step, cudaStream_t stream) {                        \
    Rows rows{};                                                                                                   \
    return copy(rows_of_vector(n, element, x_step, y_step, &rows), rows, y, x, kind, &stream);                     \
  }                                                                                                                \
  cublasStatus_t cublas##direction##Matrix##suffix(size height, size width, size element, const void* a, size lda, \
                                                   void* b, size ldb) {                                            \
    Rows rows{};                                                                                                   \
    return copy(rows_of_matrix(height, width, element, lda, ldb, &rows), rows, b, a, kind, nullptr);               \
  }                                                                                                                \
  cublasStatus_t cublas##direction##MatrixAsync##suffix(size height, size width, size element, const void* a,      \
                                                        size lda, void* b, size ldb, cudaStream_t stream) {        \
    Rows rows{};                                                                                                   \
    return copy(rows_of_matrix(height, width, element, lda, ldb, &rows), rows, b, a, kind, &stream);               \
  }
COPIES(Set, cudaMemcpyHostToDevice, , int)
COPIES(Set, cudaMemcpyHostToDevice, _64, int64_t)
COPIES(Get, cudaMemcpyDeviceToHost, , int)
COPIES(Get, cudaMemcpyDeviceToHost, _64, int64_t)
#undef COPIES

}  // extern "C"

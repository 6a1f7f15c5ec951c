// cublasLtMatmul, and what says before whether it can be had. There is one algorithm, which needs no workspace.
#include <algorithm>

#include "preload/trace/signature.h"
#include "tools/device/blas/handle.h"
#include "tools/device/blas/lt/objects.h"
#include "tools/device/blas/product.h"

namespace reprise::sim::blas::lt {
namespace {

struct Descriptors {
  const Description* description;
  const Layout* a;
  const Layout* b;
  const Layout* c;
  const Layout* d;
  bool complete() const {
    return description != nullptr && a != nullptr && b != nullptr && c != nullptr && d != nullptr;
  }
};

Descriptors descriptors(cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d) {
  const auto layout = [](cublasLtMatrixLayout_t opaque) { return reinterpret_cast<const Layout*>(opaque); };
  return {reinterpret_cast<const Description*>(description), layout(a), layout(b), layout(c), layout(d)};
}

bool has_bias(uint32_t epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
         epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}
bool is_epilogue(uint32_t epilogue) {
  return has_bias(epilogue) || epilogue == CUBLASLT_EPILOGUE_DEFAULT || epilogue == CUBLASLT_EPILOGUE_RELU ||
         epilogue == CUBLASLT_EPILOGUE_GELU;
}

cublasStatus_t check_layout(const Layout& layout) {
  if (layout.order != CUBLASLT_ORDER_COL && layout.order != CUBLASLT_ORDER_ROW) {
    return not_supported("this order of a cuBLASLt matrix");
  }
  if (layout.plane != 0) return not_supported("a complex matrix of two planes");
  const uint64_t line = layout.order == CUBLASLT_ORDER_COL ? layout.rows : layout.columns;
  const bool valid = layout.leading >= 0 && static_cast<uint64_t>(layout.leading) >= line && layout.batch >= 0;
  return valid ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

Matrix matrix_of(const Layout& layout, int32_t operation = CUBLAS_OP_N) {
  Matrix matrix{nullptr, 1, layout.leading, layout.matrix_step, static_cast<cudaDataType_t>(layout.type)};
  if (layout.order == CUBLASLT_ORDER_ROW) std::swap(matrix.row, matrix.column);
  if (operation != CUBLAS_OP_N) std::swap(matrix.row, matrix.column);
  return matrix;
}

cublasStatus_t check_batch(const Descriptors& with) {
  for (const Layout* other : {with.b, with.c, with.d}) {
    if (other->batch != with.a->batch) return CUBLAS_STATUS_INVALID_VALUE;
    if (other->batch_mode != with.a->batch_mode) return not_supported("matrices of different batch modes");
  }
  const bool known =
      with.a->batch_mode == CUBLASLT_BATCH_MODE_STRIDED || with.a->batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY;
  return known ? CUBLAS_STATUS_SUCCESS : not_supported("this batch mode of cuBLASLt");
}

bool fill_shape(const Descriptors& with, Product& product) {
  const Description& description = *with.description;
  const auto rows = [](const Layout& layout, int32_t operation) {
    return static_cast<int64_t>(operation == CUBLAS_OP_N ? layout.rows : layout.columns);
  };
  const auto columns = [](const Layout& layout, int32_t operation) {
    return static_cast<int64_t>(operation == CUBLAS_OP_N ? layout.columns : layout.rows);
  };
  product.m = rows(*with.a, description.operation_a);
  product.k = columns(*with.a, description.operation_a);
  product.n = columns(*with.b, description.operation_b);
  const auto fits = [&](const Layout& layout) {
    return rows(layout, CUBLAS_OP_N) == product.m && columns(layout, CUBLAS_OP_N) == product.n;
  };
  return rows(*with.b, description.operation_b) == product.k && fits(*with.c) && fits(*with.d);
}

cublasStatus_t check_description(const Description& description, int32_t d_type) {
  for (const int32_t operation : {description.operation_a, description.operation_b}) {
    if (operation < CUBLAS_OP_N || operation > CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (description.pointer_mode != CUBLASLT_POINTER_MODE_HOST &&
      description.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE) {
    return not_supported("a vector of alphas");
  }
  if (!is_epilogue(description.epilogue)) return not_supported("this epilogue of cuBLASLt");
  if (has_bias(description.epilogue) && description.bias_type != -1 && description.bias_type != d_type) {
    return not_supported("a bias of another type than the result");
  }
  return CUBLAS_STATUS_SUCCESS;
}

// All of the product but operands and scalars.
cublasStatus_t describe(const Descriptors& with, Product& product) {
  if (!with.complete()) return CUBLAS_STATUS_INVALID_VALUE;
  const Description& description = *with.description;
  cublasStatus_t status = check_description(description, with.d->type);
  for (const Layout* layout : {with.a, with.b, with.c, with.d}) {
    if (status == CUBLAS_STATUS_SUCCESS) status = check_layout(*layout);
  }
  if (status == CUBLAS_STATUS_SUCCESS) status = check_batch(with);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (!fill_shape(with, product)) return CUBLAS_STATUS_INVALID_VALUE;
  product.a = matrix_of(*with.a, description.operation_a);
  product.b = matrix_of(*with.b, description.operation_b);
  product.c = matrix_of(*with.c);
  product.d = matrix_of(*with.d);
  product.batch = with.d->batch;
  product.tables = with.d->batch_mode == CUBLASLT_BATCH_MODE_POINTER_ARRAY;
  product.conjugate_a = description.operation_a == CUBLAS_OP_C;
  product.conjugate_b = description.operation_b == CUBLAS_OP_C;
  product.scalars_on_device = description.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  product.scale_type = static_cast<cudaDataType_t>(description.scale);
  product.compute = static_cast<cublasComputeType_t>(description.compute);
  product.epilogue = description.epilogue;
  product.multiprocessors = description.multiprocessors;
  if (has_bias(description.epilogue)) product.bias = description.bias;
  product.bias_matrix = description.bias_step;
  const bool types = product.a.type == product.b.type && product.c.type == product.d.type &&
                     is_supported(product.compute, product.scale_type, product.a.type, product.d.type);
  return types ? CUBLAS_STATUS_SUCCESS : not_supported("a product of these types");
}

// Of an algorithm and how it was set; the same for the default one however it came.
uint32_t number_of(const cublasLtMatmulAlgo_t* opaque) {
  cublasLtMatmulAlgo_t used;
  store(opaque == nullptr ? Algorithm{} : load(*opaque), used);
  return static_cast<uint32_t>(trace::hash_bytes(&used, sizeof used));
}

void set_result(cublasLtMatmulHeuristicResult_t& result, const Algorithm& algorithm) {
  result = {};
  store(algorithm, result.algo);
  result.state = CUBLAS_STATUS_SUCCESS;
  result.wavesCount = 1;
}

}  // namespace
}  // namespace reprise::sim::blas::lt

using namespace reprise::sim::blas;      // NOLINT(google-build-using-namespace): the entry points below are global
using namespace reprise::sim::blas::lt;  // NOLINT(google-build-using-namespace)

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  if (find_handle(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (preference == nullptr || wanted <= 0 || results == nullptr || count == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  *count = 0;
  Product product;
  const cublasStatus_t status = describe(descriptors(description, a, b, c, d), product);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  set_result(results[0], Algorithm{});
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale,
                                      cudaDataType_t a, cudaDataType_t b, cudaDataType_t c, cudaDataType_t d, int id,
                                      cublasLtMatmulAlgo_t* algorithm) {
  if (find_handle(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algorithm == nullptr || id != 0) return CUBLAS_STATUS_INVALID_VALUE;
  if (a != b || c != d || !is_supported(compute, scale, a, d)) return not_supported("a product of these types");
  store(Algorithm{}, *algorithm);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (find_handle(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algorithm == nullptr || result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Product product;
  const cublasStatus_t status = describe(descriptors(description, a, b, c, d), product);
  if (status == CUBLAS_STATUS_SUCCESS) set_result(*result, load(*algorithm));
  return status;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream) {
  if (find_handle(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  Product product;
  const cublasStatus_t status = describe(descriptors(description, a_layout, b_layout, c_layout, d_layout), product);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (alpha == nullptr || beta == nullptr || a == nullptr || b == nullptr || d == nullptr) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (has_bias(product.epilogue) && product.bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace == nullptr && workspace_bytes != 0) return CUBLAS_STATUS_INVALID_VALUE;
  product.a.at = a;
  product.b.at = b;
  product.c.at = c;
  product.d.at = d;
  product.alpha = alpha;
  product.beta = beta;
  product.workspace = workspace;
  product.workspace_bytes = workspace_bytes;
  product.algorithm = number_of(algorithm);
  return launch(product, stream);
}

}  // extern "C"

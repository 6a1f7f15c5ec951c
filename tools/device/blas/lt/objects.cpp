// Descriptors and algorithms: made, set, read, destroyed.
#include "tools/device/blas/lt/objects.h"

#include <cuda_runtime_api.h>

#include "tools/device/blas/handle.h"
#include "tools/device/blas/product.h"
#include "tools/device/blas/status.h"

using namespace reprise::sim::blas;      // NOLINT(google-build-using-namespace): the entry points below are global
using namespace reprise::sim::blas::lt;  // NOLINT(google-build-using-namespace)

namespace {

template <typename Value>
cublasStatus_t set(Value& field, const void* from, size_t bytes) {
  if (from == nullptr || bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, sizeof field);
  return CUBLAS_STATUS_SUCCESS;
}

// The value may have another type than the default's.
template <typename Value>
cublasStatus_t accept_default(const char* attribute, Value value, const void* from, size_t bytes) {
  Value wanted{};
  const cublasStatus_t status = set(wanted, from, bytes);
  return status == CUBLAS_STATUS_SUCCESS && wanted != value ? not_supported(attribute) : status;
}

template <typename Value>
cublasStatus_t get(const Value& field, void* to, size_t bytes, size_t* written) {
  if (bytes == 0 && written == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes != 0 && (to == nullptr || bytes != sizeof field)) return CUBLAS_STATUS_INVALID_VALUE;
  if (bytes != 0) std::memcpy(to, &field, sizeof field);
  if (written != nullptr) *written = sizeof field;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Ours, typename Opaque>
cublasStatus_t make(const Ours& value, Opaque* to) {
  if (to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *to = reinterpret_cast<Opaque>(new Ours(value));
  return CUBLAS_STATUS_SUCCESS;
}

template <typename Ours, typename Opaque>
cublasStatus_t destroy(Opaque opaque) {
  delete reinterpret_cast<Ours*>(opaque);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

#define LAYOUT(...)
#define DESCRIPTION(...)
#define PREFERENCE(...)
#define ALGORITHM(...)
#define DEFAULT_ONLY(...)

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus_t ready = ensure_kernel(); ready != CUBLAS_STATUS_SUCCESS) return ready;
  return make(Handle{}, handle);
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  found->mark = 0;
  delete found;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) { return library_property(type, value); }
const char* cublasLtGetStatusName(cublasStatus_t status) { return status_name(status); }
const char* cublasLtGetStatusString(cublasStatus_t status) { return status_text(status); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  Layout made;
  made.type = type;
  made.rows = rows;
  made.columns = columns;
  made.leading = leading;
  return make(made, layout);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy<Layout>(layout); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which,
                                                const void* from, size_t bytes) {
  auto* to = reinterpret_cast<Layout*>(layout);
  if (to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (which) {
#undef LAYOUT
#define LAYOUT(attribute, type, field, value) \
  case attribute:                             \
    return set(to->field, from, bytes);
#include "tools/device/blas/lt/attributes.def"
#undef LAYOUT
#define LAYOUT(...)
    default:
      return not_supported("an attribute of a cuBLASLt matrix layout");
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  Description made;
  made.compute = compute;
  made.scale = scale;
  return make(made, description);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return destroy<Description>(description); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t which,
                                              const void* from, size_t bytes) {
  auto* to = reinterpret_cast<Description*>(description);
  if (to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (which) {
#undef DESCRIPTION
#undef DEFAULT_ONLY
#define DESCRIPTION(attribute, type, field, value) \
  case attribute:                                  \
    return set(to->field, from, bytes);
#define DEFAULT_ONLY(attribute, type, value) \
  case attribute:                            \
    return accept_default<type>(#attribute, value, from, bytes);
#include "tools/device/blas/lt/attributes.def"
#undef DESCRIPTION
#undef DEFAULT_ONLY
#define DESCRIPTION(...)
#define DEFAULT_ONLY(...)
    default:
      return not_supported("an attribute of a cuBLASLt product");
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(Preference{}, preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which, const void* from,
                                                    size_t bytes) {
  auto* to = reinterpret_cast<Preference*>(preference);
  if (to == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (which) {
#undef PREFERENCE
#define PREFERENCE(attribute, type, field, value) \
  case attribute:                                 \
    return set(to->field, from, bytes);
#include "tools/device/blas/lt/attributes.def"
#undef PREFERENCE
#define PREFERENCE(...)
    default:
      return not_supported("an attribute of a cuBLASLt preference");
  }
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* opaque,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, const void* from,
                                                    size_t bytes) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  Algorithm algorithm = load(*opaque);
  cublasStatus_t status = CUBLAS_STATUS_INVALID_VALUE;
  switch (which) {
#undef ALGORITHM
#define ALGORITHM(attribute, type, field, value) \
  case attribute:                                \
    status = set(algorithm.field, from, bytes);  \
    break;
#include "tools/device/blas/lt/attributes.def"
#undef ALGORITHM
#define ALGORITHM(...)
  }
  if (status == CUBLAS_STATUS_SUCCESS) store(algorithm, *opaque);
  return status;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* opaque,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void* to, size_t bytes,
                                                    size_t* written) {
  if (opaque == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  const Algorithm algorithm = load(*opaque);
  switch (which) {
#undef ALGORITHM
#define ALGORITHM(attribute, type, field, value) \
  case attribute:                                \
    return get(algorithm.field, to, bytes, written);
#include "tools/device/blas/lt/attributes.def"
#undef ALGORITHM
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

}  // extern "C"

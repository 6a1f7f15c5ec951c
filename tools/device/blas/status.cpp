#include "tools/device/blas/status.h"

namespace reprise::sim::blas {

const char* status_name(cublasStatus_t status) {
  switch (status) {
#define STATUS(name, text) \
  case name:               \
    return #name;
#include "tools/device/blas/status.def"
#undef STATUS
  }
  return "<unknown>";
}

const char* status_text(cublasStatus_t status) {
  switch (status) {
#define STATUS(name, text) \
  case name:               \
    return text;
#include "tools/device/blas/status.def"
#undef STATUS
  }
  return "<unknown>";
}

cublasStatus_t library_property(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (type) {
    case MAJOR_VERSION:
      *value = CUBLAS_VER_MAJOR;
      return CUBLAS_STATUS_SUCCESS;
    case MINOR_VERSION:
      *value = CUBLAS_VER_MINOR;
      return CUBLAS_STATUS_SUCCESS;
    case PATCH_LEVEL:
      *value = CUBLAS_VER_PATCH;
      return CUBLAS_STATUS_SUCCESS;
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

}  // namespace reprise::sim::blas

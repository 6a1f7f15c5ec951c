// Handles and what is set in them.
#include "tools/device/blas/handle.h"

#include <cuda_runtime_api.h>

#include "tools/device/blas/product.h"
#include "tools/device/blas/status.h"

using namespace reprise::sim::blas;  // NOLINT(google-build-using-namespace): the entry points below are global

namespace {

constexpr uintptr_t kWorkspaceAlignment = 256;
constexpr unsigned kMathFlags = CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;

bool is_math_mode(unsigned mode) { return (mode & ~kMathFlags) <= CUBLAS_TF32_TENSOR_OP_MATH; }

int multiprocessors_of_device() {
  int device = 0;
  int count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  return cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) == cudaSuccess ? count : 0;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  if (const cublasStatus_t ready = ensure_kernel(); ready != CUBLAS_STATUS_SUCCESS) return ready;
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  cudaDeviceSynchronize();
  found->mark = 0;
  delete found;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  found->workspace = nullptr;
  found->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (stream == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *stream = found->stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (reinterpret_cast<uintptr_t>(workspace) % kWorkspaceAlignment != 0) return CUBLAS_STATUS_INVALID_VALUE;
  found->workspace = workspace;
  found->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_math_mode(mode)) return CUBLAS_STATUS_INVALID_VALUE;
  found->math = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = found->math;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE) return CUBLAS_STATUS_INVALID_VALUE;
  found->pointer_mode = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = found->pointer_mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode != CUBLAS_ATOMICS_NOT_ALLOWED && mode != CUBLAS_ATOMICS_ALLOWED) return CUBLAS_STATUS_INVALID_VALUE;
  found->atomics = mode;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (mode == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *mode = found->atomics;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetSmCountTarget(cublasHandle_t handle, int* count) {
  const Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (count == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *count = found->multiprocessors;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int* version) {
  if (find_handle(handle) == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) { return library_property(type, value); }
size_t cublasGetCudartVersion() { return CUDART_VERSION; }
const char* cublasGetStatusName(cublasStatus_t status) { return status_name(status); }
const char* cublasGetStatusString(cublasStatus_t status) { return status_text(status); }

cublasStatus_t cublasSetSmCountTarget(cublasHandle_t handle, int count) {
  Handle* found = find_handle(handle);
  if (found == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (count < 0 || count > multiprocessors_of_device()) return CUBLAS_STATUS_INVALID_VALUE;
  found->multiprocessors = count;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

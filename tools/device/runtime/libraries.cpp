// Libraries of kernels that the program loads itself.
#include <algorithm>

#include "tools/device/runtime/forward.h"

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  const cudaError_t error = call(&Driver::cuLibraryGetKernel, kernel, library, name);
  if (error == cudaSuccess) keep_kernels(kernel, 1);
  return error;
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  unsigned there = 0;
  if (const cudaError_t error = cudaLibraryGetKernelCount(&there, library); error != cudaSuccess) return error;
  const cudaError_t error = call(&Driver::cuLibraryEnumerateKernels, kernels, count, library);
  if (error == cudaSuccess) keep_kernels(kernels, std::min(count, there));
  return error;
}
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  return forward(&Driver::cuKernelSetAttribute, attribute, value, kernel, device);
}

}  // extern "C"

// Kernel launches, host functions, and what can be asked about a kernel.
#include <vector>

#include "tools/device/runtime/runtime.h"

namespace reprise::sim::runtime {
namespace {

struct Configuration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// <<<...>>> pushes, the kernel's stub pops; arguments of a launch may contain launches themselves.
std::vector<Configuration>& configurations() {
  thread_local std::vector<Configuration> stack;
  return stack;
}

// The driver takes a kernel's handle where it wants a function.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

cudaError_t launch(CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, cudaStream_t stream) {
  // find_kernel() has kept the reason as the thread's last error.
  if (kernel == nullptr) {
    return peek_last_error() != cudaSuccess ? peek_last_error() : remember(cudaErrorInvalidDeviceFunction);
  }
  const cudaError_t error =
      call(&Driver::cuLaunchKernel, as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y, block.z,
           static_cast<unsigned>(shared_bytes), stream, arguments, static_cast<void**>(nullptr));
  return error == cudaErrorInvalidValue ? remember(cudaErrorInvalidConfiguration) : error;
}

CUlaunchConfig to_driver(const cudaLaunchConfig_t* config, cudaStream_t stream) {
  static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
  CUlaunchConfig converted{};
  converted.gridDimX = config->gridDim.x;
  converted.gridDimY = config->gridDim.y;
  converted.gridDimZ = config->gridDim.z;
  converted.blockDimX = config->blockDim.x;
  converted.blockDimY = config->blockDim.y;
  converted.blockDimZ = config->blockDim.z;
  converted.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
  converted.hStream = stream;
  converted.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
  converted.numAttrs = config->numAttrs;
  return converted;
}

cudaError_t launch_extended(const cudaLaunchConfig_t* config, cudaStream_t stream, const void* function,
                            void** arguments) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  const CUlaunchConfig converted = to_driver(config, stream);
  return call(&Driver::cuLaunchKernelEx, &converted, as_function(kernel), arguments, static_cast<void**>(nullptr));
}

cudaError_t launch_cooperative(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuLaunchCooperativeKernel, as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y,
              block.z, static_cast<unsigned>(shared_bytes), stream, arguments);
}

// Attributes have the same numbers in both interfaces; 0 where the driver does not say.
int kernel_attribute(CUkernel kernel, CUfunction_attribute attribute) {
  int value = 0;
  if (driver()->cuKernelGetAttribute(&value, attribute, kernel, current_device()) != CUDA_SUCCESS) return 0;
  return value;
}

}  // namespace
}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  auto& stack = configurations();
  if (stack.empty()) return remember(cudaErrorMissingConfiguration);
  *grid = stack.back().grid;
  *block = stack.back().block;
  *shared_bytes = stack.back().shared_bytes;
  *static_cast<cudaStream_t*>(stream) = stack.back().stream;
  stack.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared_bytes, stream);
}
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                    cudaStream_t stream) {
  return launch(kernel, grid, block, arguments, shared_bytes, per_thread(stream));
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  return launch(find_kernel(function), grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                                  cudaStream_t stream) {
  return launch(find_kernel(function), grid, block, arguments, shared_bytes, per_thread(stream));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return launch_extended(config, config->stream, function, arguments);
}
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  return launch_extended(config, per_thread(config->stream), function, arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch_cooperative(function, grid, block, arguments, shared_bytes, stream);
}
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                             size_t shared_bytes, cudaStream_t stream) {
  return launch_cooperative(function, grid, block, arguments, shared_bytes, per_thread(stream));
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  *attributes = {};
  const auto size = [&](CUfunction_attribute attribute) {
    return static_cast<size_t>(kernel_attribute(kernel, attribute));
  };
  attributes->sharedSizeBytes = size(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  attributes->constSizeBytes = size(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  attributes->localSizeBytes = size(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  attributes->maxThreadsPerBlock = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  attributes->numRegs = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_NUM_REGS);
  attributes->ptxVersion = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  attributes->binaryVersion = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  attributes->cacheModeCA = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  attributes->maxDynamicSharedSizeBytes = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  attributes->preferredShmemCarveout = kernel_attribute(kernel, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuKernelSetAttribute, static_cast<CUfunction_attribute>(attribute), value, kernel,
              current_device());
}

// A hint only: nothing depends on it.
cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache /*config*/) {
  return find_kernel(function) == nullptr ? peek_last_error() : cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* bytes) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuKernelGetParamInfo, kernel, index, offset, bytes);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                   size_t shared_bytes, unsigned flags) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, as_function(kernel), block_size,
              shared_bytes, flags);
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuOccupancyAvailableDynamicSMemPerBlock, bytes, as_function(kernel), blocks, block_size);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  if (config == nullptr) return remember(cudaErrorInvalidValue);
  const CUlaunchConfig converted = to_driver(config, config->stream);
  return call(&Driver::cuOccupancyMaxPotentialClusterSize, size, as_function(kernel), &converted);
}
cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* function, const cudaLaunchConfig_t* config) {
  const CUkernel kernel = find_kernel(function);
  if (kernel == nullptr) return peek_last_error();
  if (config == nullptr) return remember(cudaErrorInvalidValue);
  const CUlaunchConfig converted = to_driver(config, config->stream);
  return call(&Driver::cuOccupancyMaxActiveClusters, count, as_function(kernel), &converted);
}

// Banks of shared memory have one width on this device: "this function will do nothing" (cuda_runtime_api.h).
cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig /*config*/) {
  return find_kernel(function) == nullptr ? peek_last_error() : cudaSuccess;
}

}  // extern "C"

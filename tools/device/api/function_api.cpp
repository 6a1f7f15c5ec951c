// Functions and kernels: parameter layouts, names, attributes, occupancy.
#include <algorithm>

#include "tools/device/engines/device.h"
#include "tools/device/modules/module.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

constexpr int kSharedOptIn = 232448;
constexpr int kSharedPerMultiprocessor = 233472;
constexpr int kReservedShared = 1024;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;

CUresult parameter_info(const KernelImage& kernel, size_t index, size_t* offset, size_t* bytes) {
  SIM_REQUIRE(offset != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(index < kernel.parameters.size(), CUDA_ERROR_INVALID_VALUE);
  *offset = kernel.parameters[index].offset;
  if (bytes != nullptr) *bytes = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult read_attribute(const KernelImage& kernel, const FunctionSettings& settings, CUfunction_attribute attribute,
                        int* value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(kernel.max_threads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kernel.static_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = settings.max_dynamic_shared;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = settings.preferred_carveout;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      *value = settings.cluster_width;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      *value = settings.cluster_height;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      *value = settings.cluster_depth;
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      *value = settings.non_portable_cluster;
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      *value = settings.cluster_policy;
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
      *value = 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult write_attribute(const KernelImage& kernel, FunctionSettings& settings, CUfunction_attribute attribute,
                         int value) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      SIM_REQUIRE(value >= 0 && value + static_cast<int>(kernel.static_shared_bytes) <= kSharedOptIn,
                  CUDA_ERROR_INVALID_VALUE);
      settings.max_dynamic_shared = value;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      SIM_REQUIRE(value >= -1 && value <= 100, CUDA_ERROR_INVALID_VALUE);
      settings.preferred_carveout = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
      settings.cluster_width = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
      settings.cluster_height = value;
      break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
      settings.cluster_depth = value;
      break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      settings.non_portable_cluster = value;
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      settings.cluster_policy = value;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

int blocks_per_multiprocessor(const KernelImage& kernel, int block, size_t dynamic_shared) {
  const int threads = (block + 31) / 32 * 32;
  const auto shared = static_cast<int>(std::min<size_t>(dynamic_shared, 1u << 30)) +
                      static_cast<int>(kernel.static_shared_bytes) + kReservedShared;
  return std::min({kThreadsPerMultiprocessor / threads, kBlocksPerMultiprocessor, kSharedPerMultiprocessor / shared});
}

CUresult occupancy(Context& context, int* blocks, CUfunction handle, int block, size_t dynamic_shared) {
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(context, handle, &function));
  SIM_REQUIRE(blocks != nullptr && block > 0, CUDA_ERROR_INVALID_VALUE);
  *blocks = blocks_per_multiprocessor(*function->kernel, block, dynamic_shared);
  return CUDA_SUCCESS;
}

CUresult potential_block(Context& context, int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of,
                         size_t shared, int limit) {
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(context, handle, &function));
  SIM_REQUIRE(grid != nullptr && block != nullptr && limit >= 0, CUDA_ERROR_INVALID_VALUE);
  int highest = static_cast<int>(function->kernel->max_threads);
  if (limit > 0) highest = std::min(highest, limit);
  int best = 0;
  for (int threads = highest / 32 * 32; threads >= 32; threads -= 32) {
    const size_t dynamic = shared_of == nullptr ? shared : shared_of(threads);
    const int blocks = blocks_per_multiprocessor(*function->kernel, threads, dynamic);
    if (blocks * threads <= best) continue;
    best = blocks * threads;
    *block = threads;
    *grid = blocks * 132;
  }
  return best > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

extern "C" {

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, func, &function));
  // Which calls want a loaded function is written of cuFuncGetAttribute alone, and not which attributes: as strict as
  // may be.
  SIM_REQUIRE(function->loaded.load(), CUDA_ERROR_FUNCTION_NOT_LOADED);
  return parameter_info(*function->kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset, size_t* paramSize) {
  SIM_ENTER();
  const std::shared_ptr<Kernel> found = kernels().share(kernel);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return parameter_info(*found->kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(name != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, hfunc, &function));
  *name = function->kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  SIM_ENTER();
  const std::shared_ptr<Kernel> found = kernels().share(hfunc);
  SIM_REQUIRE(name != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  *name = found->kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(hmod != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, hfunc, &function));
  *hmod = function->module;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pFunc != nullptr, CUDA_ERROR_INVALID_VALUE);
  return kernel_function(*context, kernel, pFunc);
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  SIM_ENTER();
  SIM_REQUIRE(pLib != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Kernel> found = kernels().share(kernel);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  *pLib = found->library;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pi != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, hfunc, &function));
  return read_attribute(*function->kernel, function->settings, attrib, pi);
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, hfunc, &function));
  return write_attribute(*function->kernel, function->settings, attrib, value);
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(pi != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Kernel> found = kernels().share(kernel);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  return read_attribute(*found->kernel, found->settings, attrib, pi);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  SIM_ENTER();
  const std::shared_ptr<Kernel> found = kernels().share(kernel);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  SIM_TRY(write_attribute(*found->kernel, found->settings, attrib, val));
  // Functions that were made from it on this device follow.
  for (const auto& [handle, function] : functions().all()) {
    if (function->of_kernel == kernel && function->context->device.ordinal == dev) {
      write_attribute(*function->kernel, function->settings, attrib, val);
    }
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> function;
  return find_function(*context, hfunc, &function);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice dev) {
  SIM_ENTER();
  SIM_REQUIRE(config >= CU_FUNC_CACHE_PREFER_NONE && config <= CU_FUNC_CACHE_PREFER_EQUAL, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(kernels().get(kernel) != nullptr, CUDA_ERROR_INVALID_HANDLE);
  SIM_REQUIRE(find_device(dev) != nullptr, CUDA_ERROR_INVALID_DEVICE);
  return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(state != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> found;
  SIM_TRY(find_function(*context, function, &found));
  *state = found->loaded.load() ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Function> found;
  SIM_TRY(find_function(*context, function, &found));
  found->loaded.store(true);
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                     size_t dynamicSMemSize) {
  SIM_ENTER_CONTEXT(context);
  return occupancy(*context, numBlocks, func, blockSize, dynamicSMemSize);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* numBlocks, CUfunction func, int blockSize,
                                                              size_t dynamicSMemSize, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) == 0, CUDA_ERROR_INVALID_VALUE);
  return occupancy(*context, numBlocks, func, blockSize, dynamicSMemSize);
}

CUresult cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                          CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
                                          int blockSizeLimit) {
  SIM_ENTER_CONTEXT(context);
  return potential_block(*context, minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                         blockSizeLimit);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* minGridSize, int* blockSize, CUfunction func,
                                                   CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                   size_t dynamicSMemSize, int blockSizeLimit, unsigned int flags) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) == 0, CUDA_ERROR_INVALID_VALUE);
  return potential_block(*context, minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
                         blockSizeLimit);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* dynamicSmemSize, CUfunction func, int numBlocks,
                                                 int blockSize) {
  SIM_ENTER_CONTEXT(context);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, func, &function));
  SIM_REQUIRE(dynamicSmemSize != nullptr && numBlocks > 0 && blockSize > 0, CUDA_ERROR_INVALID_VALUE);
  const int share =
      kSharedPerMultiprocessor / numBlocks - kReservedShared - static_cast<int>(function->kernel->static_shared_bytes);
  *dynamicSmemSize = static_cast<size_t>(std::clamp(share, 0, kSharedOptIn));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* clusterSize, CUfunction func, const CUlaunchConfig* config) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(clusterSize != nullptr && config != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<Function> function;
  SIM_TRY(find_function(*context, func, &function));
  *clusterSize = function->settings.non_portable_cluster != 0 ? 16 : 8;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* numClusters, CUfunction func, const CUlaunchConfig* config) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(numClusters != nullptr && config != nullptr, CUDA_ERROR_INVALID_VALUE);
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config->attrs[i].value.clusterDim;
    cluster = std::max(1u, size.x * size.y * size.z);
  }
  int blocks = 0;
  const auto threads = static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
  SIM_TRY(occupancy(*context, &blocks, func, threads, config->sharedMemBytes));
  *numClusters = blocks * 132 / static_cast<int>(cluster);
  return CUDA_SUCCESS;
}

}  // extern "C"

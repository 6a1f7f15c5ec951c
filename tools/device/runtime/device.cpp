// Devices, versions, limits, errors, and the way to the driver's own functions.
#include <cstring>

#include "tools/device/runtime/forward.h"

namespace reprise::sim::runtime {
namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
#define ERROR(name, text) {name, #name, text},
#include "tools/device/runtime/errors.def"
#undef ERROR
};

const ErrorText* find_error(cudaError_t error) {
  for (const ErrorText& known : kErrors) {
    if (known.error == error) return &known;
  }
  return nullptr;
}

// Attributes have the same numbers in both interfaces; 0 where the driver does not say.
int attribute(CUdevice_attribute which, int device) {
  int value = 0;
  if (driver()->cuDeviceGetAttribute(&value, which, device) != CUDA_SUCCESS) return 0;
  return value;
}

void read_shape(cudaDeviceProp& to, int device) {
  to.regsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, device);
  to.warpSize = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device);
  to.maxThreadsPerBlock = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device);
  constexpr CUdevice_attribute kBlock[] = {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
                                           CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z};
  constexpr CUdevice_attribute kGrid[] = {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
                                          CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z};
  for (int i = 0; i < 3; ++i) {
    to.maxThreadsDim[i] = attribute(kBlock[i], device);
    to.maxGridSize[i] = attribute(kGrid[i], device);
  }
  to.major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  to.minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  to.multiProcessorCount = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
  to.maxThreadsPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, device);
  to.maxBlocksPerMultiProcessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, device);
  to.regsPerMultiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, device);
}

void read_memory(cudaDeviceProp& to, int device) {
  const auto size = [device](CUdevice_attribute which) { return static_cast<size_t>(attribute(which, device)); };
  to.sharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  to.sharedMemPerBlockOptin = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  to.sharedMemPerMultiprocessor = size(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  to.reservedSharedMemPerBlock = size(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  to.memPitch = size(CU_DEVICE_ATTRIBUTE_MAX_PITCH);
  to.totalConstMem = size(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
  to.textureAlignment = size(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
  to.l2CacheSize = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  to.memoryBusWidth = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device);
  to.asyncEngineCount = attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, device);
  to.unifiedAddressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device);
  to.managedMemory = attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, device);
  to.concurrentManagedAccess = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
  to.pageableMemoryAccess = attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device);
  to.canMapHostMemory = attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, device);
  to.memoryPoolsSupported = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, device);
}

void read_features(cudaDeviceProp& to, int device) {
  to.integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED, device);
  to.concurrentKernels = attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, device);
  to.streamPrioritiesSupported = attribute(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, device);
  to.cooperativeLaunch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, device);
  to.computePreemptionSupported = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, device);
  to.clusterLaunch = attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device);
  to.ECCEnabled = attribute(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, device);
  to.pciBusID = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, device);
  to.pciDeviceID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, device);
  to.pciDomainID = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, device);
}

}  // namespace
}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

extern "C" {

cudaError_t cudaGetLastError() { return take_last_error(); }
cudaError_t cudaPeekAtLastError() { return peek_last_error(); }
const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* known = find_error(error);
  return known == nullptr ? "unrecognized error code" : known->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* known = find_error(error);
  return known == nullptr ? "unrecognized error code" : known->text;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 0;
  return driver() == nullptr ? cudaSuccess : remember(driver()->cuDriverGetVersion(version));
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return call_without_context(&Driver::cuDeviceGetCount, count);
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return remember(set_current_device(device)); }
cudaError_t cudaInitDevice(int device, unsigned /*device_flags*/, unsigned /*flags*/) {
  const int before = current_device();
  const cudaError_t error = set_current_device(device);
  if (error == cudaSuccess && before != device) set_current_device(before);
  return remember(error);
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return call_without_context(&Driver::cuDevicePrimaryCtxSetFlags_v2, current_device(), flags);
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  int active = 0;
  return call_without_context(&Driver::cuDevicePrimaryCtxGetState, current_device(), flags, &active);
}
cudaError_t cudaDeviceReset() { return remember(reset_device()); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  return call_without_context(&Driver::cuDeviceGetAttribute, value, static_cast<CUdevice_attribute>(which), device);
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  return call_without_context(&Driver::cuDeviceGetPCIBusId, text, bytes, device);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  return call_without_context(&Driver::cuDeviceGetByPCIBusId, device, text);
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  CUcontext other = nullptr;
  const cudaError_t error = primary_context(peer, &other);
  return error != cudaSuccess ? remember(error) : call(&Driver::cuCtxEnablePeerAccess, other, flags);
}
cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUcontext other = nullptr;
  const cudaError_t error = primary_context(peer, &other);
  return error != cudaSuccess ? remember(error) : call(&Driver::cuCtxDisablePeerAccess, other);
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call_without_context(&Driver::cuDeviceCanAccessPeer, can, device, peer);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr which, int device, int peer) {
  return call_without_context(&Driver::cuDeviceGetP2PAttribute, value, static_cast<CUdevice_P2PAttribute>(which),
                              device, peer);
}
// Banks of shared memory have one width on this device, and setting it does nothing (cuda_runtime_api.h).
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (config == nullptr) return remember(cudaErrorInvalidValue);
  *config = cudaSharedMemBankSizeFourByte;
  return remember(ensure_context());
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig /*config*/) { return remember(ensure_context()); }
// All devices are alike.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return remember(cudaErrorInvalidValue);
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) return error;
  *device = 0;
  return count == 0 ? remember(cudaErrorNoDevice) : cudaSuccess;
}
cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callback, void* user, cudaLogsCallbackHandle* handle) {
  return call(&Driver::cuLogsRegisterCallback, reinterpret_cast<CUlogsCallback>(callback), user, handle);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  std::memset(properties, 0, sizeof *properties);
  cudaError_t error = call_without_context(&Driver::cuDeviceGetName, properties->name,
                                           static_cast<int>(sizeof properties->name), device);
  if (error != cudaSuccess) return error;
  error = call_without_context(&Driver::cuDeviceTotalMem_v2, &properties->totalGlobalMem, device);
  if (error != cudaSuccess) return error;
  error = call_without_context(&Driver::cuDeviceGetUuid_v2, reinterpret_cast<CUuuid*>(&properties->uuid), device);
  if (error != cudaSuccess) return error;
  read_shape(*properties, device);
  read_memory(*properties, device);
  read_features(*properties, device);
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  // Results of the query have the same numbers in both interfaces.
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const cudaError_t error = call_without_context(&Driver::cuGetProcAddress_v2, symbol, function,
                                                 static_cast<int>(version), static_cast<cuuint64_t>(flags), &found);
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return status != nullptr && error == cudaErrorSymbolNotFound ? cudaSuccess : error;
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** function, unsigned version,
                                                  unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
  return cudaGetDriverEntryPointByVersion(symbol, function, version, flags, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion_ptsz(symbol, function, CUDART_VERSION, flags, status);
}

}  // extern "C"

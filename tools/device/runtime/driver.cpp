// Finds the driver and keeps contexts and errors.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <utility>

#include "preload/exports/rows.h"
#include "tools/device/runtime/runtime.h"
#include "tools/device/runtime/unsupported.h"

namespace reprise::sim::runtime {
namespace {

constexpr int kMostDevices = 64;

// As NVIDIA's runtime looks functions up: by base name and version, through the one function that it finds by dlsym.
template <typename Function>
void look_up(void* library, decltype(&::cuGetProcAddress_v2) resolve, const char* base, int version, const char* symbol,
             Function& entry) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const cuuint64_t stream =
      per_thread_symbol(symbol) ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  if (resolve == nullptr || resolve(base, &found, version, stream, &status) != CUDA_SUCCESS) found = nullptr;
  if (found == nullptr) found = dlsym(library, symbol);
  entry = reinterpret_cast<Function>(found);
}

const Driver* load_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return nullptr;
  auto* table = new Driver{};
  const auto resolve = reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(dlsym(library, "cuGetProcAddress_v2"));
  const auto ask_version = reinterpret_cast<decltype(&::cuDriverGetVersion)>(dlsym(library, "cuDriverGetVersion"));
  int driver_version = 0;  // which finds nothing by a version above its own
  if (ask_version == nullptr || ask_version(&driver_version) != CUDA_SUCCESS) driver_version = kNewestVersion;
#define REPRISE_INTEROP_ROW(...)
#define REPRISE_ROW(symbol, row_class, touches, stream, outputs, waits, base, version) \
  if (version <= driver_version) look_up(library, resolve, #base, version, #symbol, table->symbol);
#include "preload/exports/hooks.def"
#undef REPRISE_ROW
  return table->cuInit == nullptr ? nullptr : table;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int thread_device = 0;
// The reset after which this thread made its context current; 0: it has not.
thread_local unsigned bound_after_reset = 0;
std::atomic<unsigned> resets{1};

struct Contexts {
  std::mutex mutex;
  CUcontext primary[kMostDevices] = {};
};

Contexts& contexts() {
  static Contexts& instance = *new Contexts;
  return instance;
}

}  // namespace

const Driver* driver() {
  static const Driver* const table = load_driver();
  return table;
}

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
cudaError_t take_last_error() { return std::exchange(last_error, cudaSuccess); }
cudaError_t peek_last_error() { return last_error; }

int unsupported(const char* function, bool& told) noexcept {
  if (!std::exchange(told, true)) std::fprintf(stderr, "reprise: simulated device: %s is not supported\n", function);
  return remember(cudaErrorNotSupported);
}

cudaError_t ensure_driver() {
  if (driver() == nullptr) return cudaErrorInsufficientDriver;
  static const CUresult initialised = driver()->cuInit(0);
  return static_cast<cudaError_t>(initialised);
}

cudaError_t ensure_context() {
  const unsigned now = resets.load(std::memory_order_relaxed);
  if (bound_after_reset == now) return cudaSuccess;
  if (const cudaError_t error = ensure_driver(); error != cudaSuccess) return error;
  CUcontext context = nullptr;
  if (driver()->cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr && bound_after_reset == 0) {
    CUdevice device = 0;
    if (driver()->cuCtxGetDevice(&device) == CUDA_SUCCESS) thread_device = device;
    bound_after_reset = now;
    return cudaSuccess;
  }
  if (const cudaError_t error = primary_context(thread_device, &context); error != cudaSuccess) return error;
  const CUresult result = driver()->cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) bound_after_reset = now;
  return static_cast<cudaError_t>(result);
}

cudaError_t primary_context(int device, CUcontext* context) {
  if (const cudaError_t error = ensure_driver(); error != cudaSuccess) return error;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  if (device < 0 || device >= kMostDevices) return cudaErrorInvalidDevice;
  if (all.primary[device] == nullptr) {
    CUdevice handle;
    CUresult result = driver()->cuDeviceGet(&handle, device);
    if (result == CUDA_SUCCESS) result = driver()->cuDevicePrimaryCtxRetain(&all.primary[device], handle);
    if (result != CUDA_SUCCESS) return static_cast<cudaError_t>(result);
  }
  *context = all.primary[device];
  return cudaSuccess;
}

int current_device() { return thread_device; }

cudaError_t set_current_device(int device) {
  if (const cudaError_t error = ensure_driver(); error != cudaSuccess) return error;
  int count = 0;
  const CUresult result = driver()->cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS) return static_cast<cudaError_t>(result);
  if (device < 0 || device >= count) return cudaErrorInvalidDevice;
  CUcontext context = nullptr;
  if (const cudaError_t error = primary_context(device, &context); error != cudaSuccess) return error;
  const CUresult bound = driver()->cuCtxSetCurrent(context);
  if (bound != CUDA_SUCCESS) return static_cast<cudaError_t>(bound);
  thread_device = device;
  bound_after_reset = resets.load(std::memory_order_relaxed);
  return cudaSuccess;
}

cudaError_t reset_device() {
  if (const cudaError_t error = ensure_driver(); error != cudaSuccess) return error;
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  CUdevice handle;
  CUresult result = driver()->cuDeviceGet(&handle, thread_device);
  if (result == CUDA_SUCCESS) result = driver()->cuDevicePrimaryCtxReset_v2(handle);
  if (all.primary[thread_device] != nullptr) {
    driver()->cuDevicePrimaryCtxRelease_v2(handle);
    all.primary[thread_device] = nullptr;
  }
  resets.fetch_add(1);
  return static_cast<cudaError_t>(result);
}

void release_contexts() {
  Contexts& all = contexts();
  const std::lock_guard lock(all.mutex);
  for (int device = 0; device < kMostDevices; ++device) {
    CUdevice handle;
    if (all.primary[device] == nullptr || driver()->cuDeviceGet(&handle, device) != CUDA_SUCCESS) continue;
    driver()->cuDevicePrimaryCtxRelease_v2(handle);
    all.primary[device] = nullptr;
  }
}

}  // namespace reprise::sim::runtime

// What nvcc's start-up code registers before main(): images, kernels, variables. Nothing is loaded before its first
// use.
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/device/runtime/runtime.h"

namespace reprise::sim::runtime {
namespace {

struct ManagedVariable {
  void** host_pointer;
  const char* name;
};

struct Fatbin {
  const void* image;
  CUlibrary library = nullptr;
  std::vector<ManagedVariable> managed;
};

struct Kernel {
  Fatbin* fatbin;
  const char* name;
  CUkernel handle = nullptr;
};

struct Variable {
  Fatbin* fatbin;
  const char* name;
  size_t bytes;
};

struct Registry {
  std::mutex mutex;
  size_t fatbins = 0;
  std::unordered_map<const void*, Kernel> kernels;
  std::unordered_map<const void*, Variable> variables;
  std::unordered_set<const void*> handles;  // of kernels, that the program has
};

Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

Fatbin* fatbin_of(void** handle) { return reinterpret_cast<Fatbin*>(handle); }

// With the registry's mutex held.
cudaError_t load(Fatbin& fatbin) {
  if (fatbin.library != nullptr) return cudaSuccess;
  if (const cudaError_t error = ensure_context(); error != cudaSuccess) return error;
  const CUresult result =
      driver()->cuLibraryLoadData(&fatbin.library, fatbin.image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != CUDA_SUCCESS) return static_cast<cudaError_t>(result);
  for (const ManagedVariable& variable : fatbin.managed) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    const CUresult found = driver()->cuLibraryGetManaged(&address, &bytes, fatbin.library, variable.name);
    if (found != CUDA_SUCCESS) return static_cast<cudaError_t>(found);
    *variable.host_pointer = reinterpret_cast<void*>(address);
  }
  return cudaSuccess;
}

}  // namespace

CUkernel find_kernel(const void* host_function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(host_function);
  if (found == all.kernels.end()) {
    if (all.handles.count(host_function) != 0) return static_cast<CUkernel>(const_cast<void*>(host_function));
    remember(cudaErrorInvalidDeviceFunction);
    return nullptr;
  }
  Kernel& kernel = found->second;
  if (kernel.handle != nullptr) return kernel.handle;
  cudaError_t error = load(*kernel.fatbin);
  if (error == cudaSuccess) {
    const CUresult result = driver()->cuLibraryGetKernel(&kernel.handle, kernel.fatbin->library, kernel.name);
    error = result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : static_cast<cudaError_t>(result);
  }
  if (error != cudaSuccess) kernel.handle = nullptr;
  remember(error);
  return kernel.handle;
}

const void* host_function_of(CUkernel kernel) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [host_function, known] : all.kernels) {
    if (known.handle == kernel) return host_function;
  }
  return kernel;
}

void keep_kernels(const CUkernel* kernels, unsigned count) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.handles.insert(kernels, kernels + count);
}

const char* kernel_name(const void* host_function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.kernels.find(host_function);
  return found == all.kernels.end() ? nullptr : found->second.name;
}

cudaError_t find_variable(const void* host_variable, CUdeviceptr* address, size_t* bytes) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.variables.find(host_variable);
  if (found == all.variables.end()) return remember(cudaErrorInvalidSymbol);
  const Variable& variable = found->second;
  if (const cudaError_t error = load(*variable.fatbin); error != cudaSuccess) return remember(error);
  const CUresult result = driver()->cuLibraryGetGlobal(address, bytes, variable.fatbin->library, variable.name);
  return remember(result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : static_cast<cudaError_t>(result));
}

cudaError_t symbol_place(const void* symbol, size_t bytes, size_t offset, void** place) {
  CUdeviceptr address = 0;
  size_t size = 0;
  if (const cudaError_t error = find_variable(symbol, &address, &size); error != cudaSuccess) return error;
  if (offset > size || bytes > size - offset) return remember(cudaErrorInvalidValue);
  *place = reinterpret_cast<void*>(address + offset);
  return cudaSuccess;
}

}  // namespace reprise::sim::runtime

using namespace reprise::sim::runtime;  // NOLINT(google-build-using-namespace): the entry points below are global

// crt/host_runtime.h declares these to every program that nvcc compiles.
extern "C" {

void** __cudaRegisterFatBinary(void* image) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  ++all.fatbins;
  return reinterpret_cast<void**>(new Fatbin{image, nullptr, {}});
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle) {
  Fatbin* fatbin = fatbin_of(handle);
  Registry& all = registry();
  bool last = false;
  {
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.kernels, [&](const auto& entry) { return entry.second.fatbin == fatbin; });
    std::erase_if(all.variables, [&](const auto& entry) { return entry.second.fatbin == fatbin; });
    last = --all.fatbins == 0;
  }
  if (fatbin->library != nullptr) driver()->cuLibraryUnload(fatbin->library);
  delete fatbin;
  if (last) release_contexts();
}

void __cudaRegisterFunction(void** handle, const char* host_function, char* /*device_function*/, const char* name,
                            int /*thread_limit*/, uint3* /*tid*/, uint3* /*bid*/, dim3* /*block*/, dim3* /*grid*/,
                            int* /*warp_size*/) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.kernels.insert_or_assign(host_function, Kernel{fatbin_of(handle), name});
}

void __cudaRegisterVar(void** handle, char* host_variable, char* /*device_address*/, const char* name, int /*external*/,
                       size_t bytes, int /*constant*/, int /*global*/) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.variables.insert_or_assign(host_variable, Variable{fatbin_of(handle), name, bytes});
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char* /*device_address*/, const char* name,
                              int /*external*/, size_t bytes, int /*constant*/, int /*global*/) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  fatbin_of(handle)->managed.push_back({host_pointer, name});
  all.variables.insert_or_assign(host_pointer, Variable{fatbin_of(handle), name, bytes});
}

// The program is about to touch a managed variable: its image must be there.
char __cudaInitModule(void** handle) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return static_cast<char>(remember(load(*fatbin_of(handle))) == cudaSuccess);
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  *kernel = find_kernel(host_function);
  if (*kernel == nullptr) return peek_last_error();
  keep_kernels(kernel, 1);
  return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  CUdeviceptr found = 0;
  size_t bytes = 0;
  if (const cudaError_t error = find_variable(symbol, &found, &bytes); error != cudaSuccess) return error;
  *address = reinterpret_cast<void*>(found);
  return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  CUdeviceptr found = 0;
  return find_variable(symbol, &found, bytes);
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return __cudaGetKernel(kernel, host_function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* host_function) {
  const CUkernel kernel = find_kernel(host_function);
  if (kernel == nullptr) return peek_last_error();
  return call(&Driver::cuKernelGetFunction, function, kernel);
}

cudaError_t cudaFuncGetName(const char** name, const void* host_function) {
  *name = kernel_name(host_function);
  return *name == nullptr ? remember(cudaErrorInvalidDeviceFunction) : cudaSuccess;
}

}  // extern "C"

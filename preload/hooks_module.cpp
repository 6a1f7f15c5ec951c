// Modules and libraries: which handles are kernels, which memory is a module's variable, and when all that ends.
#include "preload/barriers.h"
#include "preload/driver.h"
#include "preload/export.h"
#include "preload/functions.h"
#include "preload/guard.h"
#include "preload/handle_map.h"
#include "preload/memory_calls.h"
#include "preload/trace/signature.h"

namespace reprise {
namespace {

CUresult global_found(CUresult result, const void* owner, const CUdeviceptr* address, const size_t* bytes) {
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS || address == nullptr || bytes == nullptr || *bytes == 0) return result;
  if (note_global(reinterpret_cast<uint64_t>(owner), *address, *bytes)) {
    note_allocated(make_allocate_call(*bytes, trace::Origin::global, CU_STREAM_LEGACY), *address);
  }
  return result;
}

void forget_global(const Global& global) {
  Allocation allocation;
  FreeCall call;
  if (take_allocation(global.address, CU_STREAM_LEGACY, &allocation, &call)) note_freed(call, allocation, CUDA_SUCCESS);
}

// Launches of its kernels may still be deferred.
template <typename Handle>
CUresult unload(const char* name, Handle handle, CUresult (*call)(Handle)) {
  const HookScope scope;
  if (!scope) return call(handle);
  before_ordered(name);
  const CUresult result = call(handle);
  if (result == CUDA_SUCCESS) forget_owner(reinterpret_cast<uint64_t>(handle), forget_global);
  return result;
}

constinit HandleMap attribute_values;  // hash of (function, attribute, device) -> value + 1, as last set

// A launch reads its function's attributes when it is issued. Setting one to the value it has is no reason to drain,
// and libraries do that before every launch.
void before_attribute(const char* name, const void* function, int attribute, int value, int device) {
  uint64_t key = trace::hash_mix(reinterpret_cast<uint64_t>(function), static_cast<uint64_t>(attribute));
  key = trace::hash_mix(key, static_cast<uint64_t>(device)) | 1;
  const uint64_t known = static_cast<uint64_t>(static_cast<uint32_t>(value)) + 1;
  if (attribute_values.find(key) == known) return;
  before_ordered(name);
  attribute_values.set(key, known);
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return global_found(driver().cuModuleGetGlobal(address, bytes, module, name), module, address, bytes);
}
REPRISE_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return global_found(driver().cuLibraryGetGlobal(address, bytes, library, name), library, address, bytes);
}
REPRISE_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return unload("cuModuleUnload", module, driver().cuModuleUnload);
}
REPRISE_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  return unload("cuLibraryUnload", library, driver().cuLibraryUnload);
}

REPRISE_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result = driver().cuModuleGetFunction(function, module, name);
  if (const HookScope scope; scope && result == CUDA_SUCCESS) note_function_handle(*function);
  return result;
}
REPRISE_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  const CUresult result = driver().cuModuleEnumerateFunctions(functions, count, module);
  const HookScope scope;
  for (unsigned i = 0; scope && result == CUDA_SUCCESS && i < count; ++i) {
    if (functions[i] != nullptr) note_function_handle(functions[i]);
  }
  return result;
}
REPRISE_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = driver().cuLibraryGetKernel(kernel, library, name);
  if (const HookScope scope; scope && result == CUDA_SUCCESS) note_kernel_handle(*kernel);
  return result;
}
REPRISE_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const CUresult result = driver().cuLibraryEnumerateKernels(kernels, count, library);
  const HookScope scope;
  for (unsigned i = 0; scope && result == CUDA_SUCCESS && i < count; ++i) {
    if (kernels[i] != nullptr) note_kernel_handle(kernels[i]);
  }
  return result;
}
REPRISE_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = driver().cuKernelGetFunction(function, kernel);
  if (const HookScope scope; scope && result == CUDA_SUCCESS) note_function_handle(*function);
  return result;
}

REPRISE_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (const HookScope scope; scope) before_attribute("cuFuncSetAttribute", function, attribute, value, -1);
  return driver().cuFuncSetAttribute(function, attribute, value);
}
REPRISE_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                             CUdevice device) {
  if (const HookScope scope; scope) before_attribute("cuKernelSetAttribute", kernel, attribute, value, device);
  return driver().cuKernelSetAttribute(attribute, value, kernel, device);
}

// Modules and libraries: which handles are kernels, which memory is a module's variable, and when all that ends.
#include "preload/base/export.h"
#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "preload/exports/barriers.h"
#include "preload/hooks/memory_calls.h"
#include "preload/trace/signature.h"
#include "preload/tracking/functions.h"
#include "preload/tracking/handle_map.h"
#include "preload/tracking/image_places.h"

namespace reprise {
namespace {

uint64_t number_of(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

template <typename Handle, typename Call>
CUresult load(const Handle* handle, const void* image, Call call) {
  const CUresult result = with_memory_of_the_driver(call);
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS) return result;
  const ImageTraits traits = traits_of_image(image);
  record_image(number_of(*handle), traits);
  record_image_place(traits, image);
  return result;
}
template <typename Handle, typename Call>
CUresult load_from(const Handle* handle, const char* path, Call call) {
  const CUresult result = with_memory_of_the_driver(call);
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS) return result;
  const ImageTraits traits = traits_of_file(path);
  record_image(number_of(*handle), traits);
  record_image_file(traits, path);
  return result;
}

template <typename Call>
CUresult find_global(const void* owner, const CUdeviceptr* address, const size_t* bytes, Call call) {
  const CUresult result = with_memory_of_the_driver(call);
  const HookScope scope;
  if (!scope || result != CUDA_SUCCESS || address == nullptr || bytes == nullptr || *bytes == 0) return result;
  if (insert_global(reinterpret_cast<uint64_t>(owner), *address, *bytes)) {
    record_allocated(make_allocate_call(*bytes, trace::Origin::global, CU_STREAM_LEGACY), *address);
  }
  return result;
}

void forget_global(const Global& global) {
  Allocation allocation;
  FreeCall call;
  if (take_allocation(global.address, CU_STREAM_LEGACY, &allocation, &call))
    record_freed(call, allocation, CUDA_SUCCESS);
}

// Before an unload: launches of its kernels may still be deferred.
template <typename Handle>
CUresult unload(RowId id, Handle handle, CUresult (*call)(Handle)) {
  const HookScope scope;
  if (!scope) return call(handle);
  if (const CUresult result = before_ordered(id); result != CUDA_SUCCESS) return result;
  const CUresult result = call(handle);
  if (result == CUDA_SUCCESS) forget_owner(reinterpret_cast<uint64_t>(handle), forget_global);
  return result;
}

constinit HandleMap attribute_values;  // hash of (function, attribute, device) -> value + 1, as last set

// A launch reads its function's attributes when it is issued. Setting one to the value it has is no reason to drain,
// and libraries do that before every launch.
CUresult before_attribute(RowId id, const void* function, int attribute, int value, int device) {
  uint64_t key = trace::hash_mix(reinterpret_cast<uint64_t>(function), static_cast<uint64_t>(attribute));
  key = trace::hash_mix(key, static_cast<uint64_t>(device)) | 1;
  const uint64_t known = static_cast<uint64_t>(static_cast<uint32_t>(value)) + 1;
  if (attribute_values.find(key) == known) return CUDA_SUCCESS;
  if (const CUresult result = before_ordered(id); result != CUDA_SUCCESS) return result;
  attribute_values.set(key, known);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace reprise

using namespace reprise;

REPRISE_EXPORT CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return load_from(module, path, [&] { return driver().cuModuleLoad(module, path); });
}
REPRISE_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image, [&] { return driver().cuModuleLoadData(module, image); });
}
REPRISE_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                           void** values) {
  return load(module, image, [&] { return driver().cuModuleLoadDataEx(module, image, count, options, values); });
}
REPRISE_EXPORT CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load(module, image, [&] { return driver().cuModuleLoadFatBinary(module, image); });
}
REPRISE_EXPORT CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit_options,
                                          void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                          void** values, unsigned count) {
  return load(library, image, [&] {
    return driver().cuLibraryLoadData(library, image, jit_options, jit_values, jit_count, options, values, count);
  });
}
REPRISE_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit_options,
                                              void** jit_values, unsigned jit_count, CUlibraryOption* options,
                                              void** values, unsigned count) {
  return load_from(library, path, [&] {
    return driver().cuLibraryLoadFromFile(library, path, jit_options, jit_values, jit_count, options, values, count);
  });
}

REPRISE_EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return find_global(module, address, bytes, [&] { return driver().cuModuleGetGlobal(address, bytes, module, name); });
}
REPRISE_EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return find_global(library, address, bytes,
                     [&] { return driver().cuLibraryGetGlobal(address, bytes, library, name); });
}
REPRISE_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return unload(RowId::k_cuModuleUnload, module, driver().cuModuleUnload);
}
REPRISE_EXPORT CUresult cuLibraryUnload(CUlibrary library) {
  return unload(RowId::k_cuLibraryUnload, library, driver().cuLibraryUnload);
}

REPRISE_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const CUresult result =
      with_memory_of_the_driver([&] { return driver().cuModuleGetFunction(function, module, name); });
  if (const HookScope scope; scope && result == CUDA_SUCCESS) insert_function_handle(*function, number_of(module));
  return result;
}
REPRISE_EXPORT CUresult cuFuncLoad(CUfunction function) {
  return with_memory_of_the_driver([&] { return driver().cuFuncLoad(function); });
}
REPRISE_EXPORT CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  const CUresult result = driver().cuModuleEnumerateFunctions(functions, count, module);
  const HookScope scope;
  for (unsigned i = 0; scope && result == CUDA_SUCCESS && i < count; ++i) {
    if (functions[i] != nullptr) insert_function_handle(functions[i], number_of(module));
  }
  return result;
}
REPRISE_EXPORT CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  const CUresult result = driver().cuLibraryGetKernel(kernel, library, name);
  if (const HookScope scope; scope && result == CUDA_SUCCESS) insert_kernel_handle(*kernel, number_of(library));
  return result;
}
REPRISE_EXPORT CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  const CUresult result = driver().cuLibraryEnumerateKernels(kernels, count, library);
  const HookScope scope;
  for (unsigned i = 0; scope && result == CUDA_SUCCESS && i < count; ++i) {
    if (kernels[i] != nullptr) insert_kernel_handle(kernels[i], number_of(library));
  }
  return result;
}
REPRISE_EXPORT CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  const CUresult result = with_memory_of_the_driver([&] { return driver().cuKernelGetFunction(function, kernel); });
  if (const HookScope scope; scope && result == CUDA_SUCCESS)
    insert_function_handle(*function, owner_of_handle(kernel));
  return result;
}
REPRISE_EXPORT CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  const CUresult result = with_memory_of_the_driver([&] { return driver().cuLibraryGetModule(module, library); });
  if (const HookScope scope; scope && result == CUDA_SUCCESS) record_module_of(number_of(library), number_of(*module));
  return result;
}

REPRISE_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (const HookScope scope; scope) {
    const CUresult order = before_attribute(RowId::k_cuFuncSetAttribute, function, attribute, value, -1);
    if (order != CUDA_SUCCESS) return order;
  }
  return driver().cuFuncSetAttribute(function, attribute, value);
}
REPRISE_EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                             CUdevice device) {
  if (const HookScope scope; scope) {
    const CUresult order = before_attribute(RowId::k_cuKernelSetAttribute, kernel, attribute, value, device);
    if (order != CUDA_SUCCESS) return order;
  }
  return driver().cuKernelSetAttribute(attribute, value, kernel, device);
}

// Modules and libraries: loading images, finding kernels and globals.
#include <algorithm>
#include <cstring>

#include "tools/device/modules/module.h"
#include "tools/device/streams/enter.h"

using namespace reprise::sim;

namespace {

CUresult load(Context& context, CUmodule* handle, std::shared_ptr<const Image> image) {
  std::shared_ptr<Module> module;
  SIM_TRY(load_module(context, std::move(image), &module));
  *handle = module->handle;
  return CUDA_SUCCESS;
}

CUresult load_data(Context& context, CUmodule* handle, const void* image) {
  SIM_REQUIRE(handle != nullptr && image != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<const Image> parsed;
  SIM_TRY(read_image(image, &parsed));
  return load(context, handle, std::move(parsed));
}

CUresult load_library(CUlibrary* handle, std::shared_ptr<const Image> image) {
  auto library = std::make_shared<Library>(std::move(image));
  library->handle = libraries().add(library);
  *handle = library->handle;
  return library->add_kernels();
}

CUresult give_global(const Module& module, const char* name, CUdeviceptr* address, size_t* bytes) {
  const Global* global = module.global(name);
  SIM_REQUIRE(global != nullptr, CUDA_ERROR_NOT_FOUND);
  if (address != nullptr) *address = global->address;
  if (bytes != nullptr) *bytes = global->bytes;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  SIM_ENTER_CONTEXT(context);
  return load_data(*context, module, image);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions, CUjit_option* options,
                            void** optionValues) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(numOptions == 0 || (options != nullptr && optionValues != nullptr), CUDA_ERROR_INVALID_VALUE);
  return load_data(*context, module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  SIM_ENTER_CONTEXT(context);
  return load_data(*context, module, fatCubin);
}

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(module != nullptr && fname != nullptr, CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<const Image> image;
  SIM_TRY(read_image_file(fname, &image));
  return load(*context, module, std::move(image));
}

CUresult cuModuleUnload(CUmodule hmod) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(modules().get(hmod) != nullptr, CUDA_ERROR_INVALID_HANDLE);
  unload_module(hmod);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  SIM_ENTER();
  SIM_REQUIRE(mode != nullptr, CUDA_ERROR_INVALID_VALUE);
  *mode = loads_lazily() ? CU_MODULE_LAZY_LOADING : CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(hfunc != nullptr && name != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Module> module = modules().share(hmod);
  SIM_REQUIRE(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const CUfunction function = module->function(name);
  SIM_REQUIRE(function != nullptr, CUDA_ERROR_NOT_FOUND);
  functions().get(function)->loaded.store(true);
  *hfunc = function;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Module> module = modules().share(mod);
  SIM_REQUIRE(count != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  *count = static_cast<unsigned>(module->image->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions, CUmodule mod) {
  SIM_ENTER_CONTEXT(context);
  const std::shared_ptr<Module> module = modules().share(mod);
  SIM_REQUIRE(functions != nullptr && numFunctions != 0, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const size_t count = std::min<size_t>(numFunctions, module->image->kernels.size());
  for (size_t i = 0; i < count; ++i) functions[i] = module->function(module->image->kernels[i].name);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(name != nullptr && (dptr != nullptr || bytes != nullptr), CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Module> module = modules().share(hmod);
  SIM_REQUIRE(module != nullptr, CUDA_ERROR_INVALID_HANDLE);
  return give_global(*module, name, dptr, bytes);
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jitOptions, void** jitOptionsValues,
                           unsigned int numJitOptions, CUlibraryOption* libraryOptions, void** libraryOptionValues,
                           unsigned int numLibraryOptions) {
  SIM_ENTER();
  SIM_REQUIRE(library != nullptr && code != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(numJitOptions == 0 || (jitOptions != nullptr && jitOptionsValues != nullptr), CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(numLibraryOptions == 0 || (libraryOptions != nullptr && libraryOptionValues != nullptr),
              CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<const Image> image;
  SIM_TRY(read_image(code, &image));
  return load_library(library, std::move(image));
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option* jitOptions,
                               void** jitOptionsValues, unsigned int numJitOptions, CUlibraryOption* libraryOptions,
                               void** libraryOptionValues, unsigned int numLibraryOptions) {
  SIM_ENTER();
  SIM_REQUIRE(library != nullptr && fileName != nullptr, CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(numJitOptions == 0 || (jitOptions != nullptr && jitOptionsValues != nullptr), CUDA_ERROR_INVALID_VALUE);
  SIM_REQUIRE(numLibraryOptions == 0 || (libraryOptions != nullptr && libraryOptionValues != nullptr),
              CUDA_ERROR_INVALID_VALUE);
  std::shared_ptr<const Image> image;
  SIM_TRY(read_image_file(fileName, &image));
  return load_library(library, std::move(image));
}

CUresult cuLibraryUnload(CUlibrary library) {
  SIM_ENTER();
  const std::shared_ptr<Library> removed = libraries().remove(library);
  SIM_REQUIRE(removed != nullptr, CUDA_ERROR_INVALID_HANDLE);
  removed->unload();
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  SIM_ENTER();
  SIM_REQUIRE(pKernel != nullptr && name != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Library> found = libraries().share(library);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const CUkernel kernel = found->kernel(name);
  SIM_REQUIRE(kernel != nullptr, CUDA_ERROR_NOT_FOUND);
  *pKernel = kernel;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  SIM_ENTER();
  SIM_REQUIRE(count != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Library> found = libraries().share(lib);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  *count = static_cast<unsigned>(found->kernels().size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  SIM_ENTER();
  SIM_REQUIRE(kernels != nullptr && numKernels != 0, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Library> found = libraries().share(lib);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  const size_t count = std::min<size_t>(numKernels, found->kernels().size());
  std::copy_n(found->kernels().begin(), count, kernels);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(pMod != nullptr, CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Library> found = libraries().share(library);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  std::shared_ptr<Module> module;
  SIM_TRY(found->module(*context, &module));
  *pMod = module->handle;
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  SIM_ENTER_CONTEXT(context);
  SIM_REQUIRE(name != nullptr && (dptr != nullptr || bytes != nullptr), CUDA_ERROR_INVALID_VALUE);
  const std::shared_ptr<Library> found = libraries().share(library);
  SIM_REQUIRE(found != nullptr, CUDA_ERROR_INVALID_HANDLE);
  std::shared_ptr<Module> module;
  SIM_TRY(found->module(*context, &module));
  return give_global(*module, name, dptr, bytes);
}

// A __managed__ variable is a global whose memory the host can read too: here, any global.
CUresult cuLibraryGetManaged(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  return cuLibraryGetGlobal(dptr, bytes, library, name);
}

}  // extern "C"

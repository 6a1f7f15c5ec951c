#include "tools/device/modules/module.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "preload/images/mapped_file.h"
#include "tools/device/base/settings.h"
#include "tools/device/engines/device.h"
#include "tools/device/memory/memory.h"
#include "tools/device/twins/executor.h"

namespace reprise::sim {
namespace {

uint32_t blob_bytes(const KernelImage& kernel) {
  uint32_t end = 0;
  for (const ParameterImage& parameter : kernel.parameters) end = std::max(end, parameter.offset + parameter.bytes);
  return kernel.parameters.empty() ? 0 : end - kernel.parameters[0].offset;
}

void copy_settings(const FunctionSettings& from, FunctionSettings& to) {
  to.max_dynamic_shared = from.max_dynamic_shared.load();
  to.preferred_carveout = from.preferred_carveout.load();
  to.non_portable_cluster = from.non_portable_cluster.load();
  to.cluster_width = from.cluster_width.load();
  to.cluster_height = from.cluster_height.load();
  to.cluster_depth = from.cluster_depth.load();
  to.cluster_policy = from.cluster_policy.load();
}

// A twin library's variable is the global itself, so that twins and the program's copies see the same bytes.
CUresult place_global(Context& context, const GlobalImage& image, Global* global) {
  global->bytes = image.bytes;
  void* own = find_twin_global(image.name.c_str(), image.bytes);
  if (own != nullptr) {
    global->address = reinterpret_cast<CUdeviceptr>(own);
    global->borrowed = true;
    Range range;
    range.base = global->address;
    range.bytes = image.bytes;
    range.kind = RangeKind::global;
    range.context = &context;
    range.device = &context.device;
    range.buffer_id = next_buffer_id();
    memory_map().add(std::move(range));
  } else if (const CUresult result =
                 allocate_device_memory(context, image.bytes, RangeKind::global, nullptr, &global->address);
             result != CUDA_SUCCESS) {
    return result;
  }
  auto* bytes = reinterpret_cast<uint8_t*>(global->address);
  std::memset(bytes, 0, image.bytes);
  std::copy_n(image.initial.data(), std::min<uint64_t>(image.initial.size(), image.bytes), bytes);
  return CUDA_SUCCESS;
}

CUresult take_image(Result<Image> parsed, std::string_view bytes, std::string_view path,
                    std::shared_ptr<const Image>* image) {
  if (!parsed.ok()) {
    return parsed.status().code() == StatusCode::unsupported ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_ERROR_INVALID_IMAGE;
  }
  auto loaded = std::make_shared<LoadedImage>();
  static_cast<Image&>(*loaded) = std::move(parsed.value());
  loaded->path = path;
  loaded->own = path.empty() ? bytes : "";
  loaded->bytes = path.empty() ? loaded->own : bytes;
  *image = std::move(loaded);
  return CUDA_SUCCESS;
}

}  // namespace

ModuleTable& modules() {
  static ModuleTable& table = *new ModuleTable;
  return table;
}
FunctionTable& functions() {
  static FunctionTable& table = *new FunctionTable;
  return table;
}
LibraryTable& libraries() {
  static LibraryTable& table = *new LibraryTable;
  return table;
}
KernelTable& kernels() {
  static KernelTable& table = *new KernelTable;
  return table;
}

CUresult read_image(const void* data, std::shared_ptr<const Image>* image) {
  const std::string_view bytes = images::bytes_of(data);
  return take_image(images::parse_image(data, settings().architecture), bytes, images::file_of(bytes).path, image);
}

CUresult read_image_file(const char* path, std::shared_ptr<const Image>* image) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return take_image(images::parse_image(content, settings().architecture), content, "", image);
}

CUresult Module::place_globals() {
  for (const GlobalImage& global : image->globals) {
    if (global.bytes == 0) continue;
    Global& placed = globals_[global.name];
    if (const CUresult result = place_global(context, global, &placed); result != CUDA_SUCCESS) {
      globals_.erase(global.name);
      release_globals();
      return result;
    }
  }
  return CUDA_SUCCESS;
}

void Module::release_globals() {
  for (const auto& [name, global] : globals_) {
    if (global.borrowed) {
      memory_map().remove(global.address);
    } else if (const auto range = memory_map().find(global.address)) {
      free_device_memory(*range);
    }
  }
  globals_.clear();
}

CUresult Module::place_code() {
  const std::lock_guard lock(mutex_);
  if (!has_code_ && !context.device.charge(settings().code_bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  has_code_ = true;
  return CUDA_SUCCESS;
}

void Module::release_code() {
  const std::lock_guard lock(mutex_);
  if (has_code_) context.device.refund(settings().code_bytes);
  has_code_ = false;
}

CUresult load_code(const Function& function) {
  if (settings().code_bytes == 0) return CUDA_SUCCESS;
  const std::shared_ptr<Module> module = modules().share(function.module);
  return module == nullptr ? CUDA_ERROR_INVALID_HANDLE : module->place_code();
}

bool loads_lazily() noexcept {
  static const bool lazily = [] {
    const char* const mode = std::getenv("CUDA_MODULE_LOADING");
    return mode == nullptr || std::strcmp(mode, "EAGER") != 0;
  }();
  return lazily;
}

CUfunction Module::function(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(name);
  if (known != functions_.end()) return known->second;
  const auto found = std::find_if(image->kernels.begin(), image->kernels.end(),
                                  [&](const KernelImage& kernel) { return kernel.name == name; });
  if (found == image->kernels.end()) return nullptr;
  auto function = std::make_shared<Function>();
  function->image = image;
  function->kernel = &*found;
  function->context = &context;
  function->module = handle;
  function->parameter_bytes = blob_bytes(*found);
  function->loaded.store(!loads_lazily());
  function->handle = functions().add(function);
  return functions_[name] = function->handle;
}

const Global* Module::global(const std::string& name) const {
  const auto found = globals_.find(name);
  return found == globals_.end() ? nullptr : &found->second;
}

void Module::end_functions() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, function] : functions_) functions().remove(function);
  functions_.clear();
}

CUresult Library::add_kernels() {
  for (const KernelImage& image_kernel : image->kernels) {
    auto kernel = std::make_shared<Kernel>();
    kernel->image = image;
    kernel->kernel = &image_kernel;
    kernel->library = handle;
    kernels_.push_back(reprise::sim::kernels().add(std::move(kernel)));
  }
  return CUDA_SUCCESS;
}

CUkernel Library::kernel(const std::string& name) const {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (image->kernels[i].name == name) return kernels_[i];
  }
  return nullptr;
}

CUresult Library::module(Context& context, std::shared_ptr<Module>* result) {
  const std::lock_guard lock(mutex_);
  const auto known = modules_.find(&context);
  if (known != modules_.end() && (*result = modules().share(known->second)) != nullptr) return CUDA_SUCCESS;
  if (const CUresult loaded = load_module(context, image, result); loaded != CUDA_SUCCESS) return loaded;
  (*result)->library = handle;
  modules_[&context] = (*result)->handle;
  return CUDA_SUCCESS;
}

void Library::unload() {
  const std::lock_guard lock(mutex_);
  for (const auto& [context, module] : modules_) unload_module(module);
  for (const CUkernel kernel : kernels_) reprise::sim::kernels().remove(kernel);
  modules_.clear();
  kernels_.clear();
}

void Library::forget(const Context& context) {
  const std::lock_guard lock(mutex_);
  modules_.erase(const_cast<Context*>(&context));
}

CUresult load_module(Context& context, std::shared_ptr<const Image> image, std::shared_ptr<Module>* result) {
  auto module = std::make_shared<Module>(context, std::move(image));
  if (const CUresult placed = module->place_globals(); placed != CUDA_SUCCESS) return placed;
  if (!loads_lazily()) {
    if (const CUresult placed = module->place_code(); placed != CUDA_SUCCESS) {
      module->release_globals();
      return placed;
    }
  }
  module->handle = modules().add(module);
  *result = std::move(module);
  return CUDA_SUCCESS;
}

void unload_module(CUmodule handle) {
  const std::shared_ptr<Module> module = modules().remove(handle);
  if (module == nullptr) return;
  module->context.drain();
  module->end_functions();
  module->release_globals();
  module->release_code();
}

void release_modules(Context& context) {
  for (const auto& [handle, module] : modules().all()) {
    if (&module->context == &context) unload_module(handle);
  }
  for (const auto& [handle, library] : libraries().all()) library->forget(context);
}

CUresult kernel_function(Context& context, CUkernel handle, CUfunction* function) {
  const std::shared_ptr<Kernel> kernel = kernels().share(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<Library> library = libraries().share(kernel->library);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<Module> module;
  if (const CUresult result = library->module(context, &module); result != CUDA_SUCCESS) return result;
  *function = module->function(kernel->kernel->name);
  Function* made = functions().get(*function);
  if (made != nullptr) made->loaded.store(true);
  if (made != nullptr && made->of_kernel == nullptr) {
    copy_settings(kernel->settings, made->settings);
    made->of_kernel = handle;
  }
  return made == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUresult find_function(Context& context, CUfunction handle, std::shared_ptr<Function>* function) {
  if (FunctionTable::is_kind(handle)) {
    *function = functions().share(handle);
    return *function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
  CUfunction own = nullptr;
  const CUresult result = kernel_function(context, reinterpret_cast<CUkernel>(handle), &own);
  if (result != CUDA_SUCCESS) return result;
  *function = functions().share(own);
  return *function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

}  // namespace reprise::sim

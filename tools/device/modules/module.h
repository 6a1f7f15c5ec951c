// Modules (images loaded into a context), libraries (images loaded into the process, instantiated per context when
// used), and their functions, kernels and globals. Callers: the module and library functions, launches, graphs.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "preload/images/image.h"
#include "tools/device/base/cuda_api.h"
#include "tools/device/base/handles.h"
#include "tools/device/streams/context.h"

namespace reprise::sim {

using images::GlobalImage;
using images::Image;
using images::KernelImage;
using images::ParameterImage;

class Module;
class Library;

// All images of this device are such.
struct LoadedImage : Image {
  std::string_view bytes;  // of the cubin or fatbin; empty: PTX, or several
  std::string path;        // the file that they are in; empty: none
  std::string own;         // ... then they are here
};

// What cuFuncSetAttribute and cuKernelSetAttribute change.
struct FunctionSettings {
  std::atomic<int> max_dynamic_shared{48 << 10};
  std::atomic<int> preferred_carveout{-1};
  std::atomic<int> non_portable_cluster{0};
  std::atomic<int> cluster_width{0}, cluster_height{0}, cluster_depth{0};
  std::atomic<int> cluster_policy{0};
};

struct Function {
  CUfunction handle = nullptr;
  std::shared_ptr<const Image> image;
  const KernelImage* kernel = nullptr;
  Context* context = nullptr;
  CUmodule module = nullptr;
  CUkernel of_kernel = nullptr;  // when it came from a library
  uint32_t parameter_bytes = 0;  // of the blob that holds all parameters
  FunctionSettings settings;
  // Handles that cuModuleEnumerateFunctions gives are of functions that are not loaded yet, unless
  // CUDA_MODULE_LOADING=EAGER.
  std::atomic<bool> loaded{false};
};

// The default since CUDA 12.2 (CUDA C++ Programming Guide, lazy loading).
bool loads_lazily() noexcept;

struct Kernel {
  std::shared_ptr<const Image> image;
  const KernelImage* kernel = nullptr;
  CUlibrary library = nullptr;
  FunctionSettings settings;
};

struct Global {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;
  bool borrowed = false;  // a twin library's own variable
};

class Module {
 public:
  Module(Context& its_context, std::shared_ptr<const Image> its_image)
      : context(its_context), image(std::move(its_image)) {}
  Context& context;
  const std::shared_ptr<const Image> image;
  CUmodule handle = nullptr;
  CUlibrary library = nullptr;

  CUresult place_globals();
  void release_globals();
  // What REPRISE_SIM_CODE says, once: CUDA_ERROR_OUT_OF_MEMORY where the device has no room.
  CUresult place_code();
  void release_code();
  // nullptr when there is none of that name.
  CUfunction function(const std::string& name);
  const Global* global(const std::string& name) const;
  void end_functions();

 private:
  std::mutex mutex_;
  bool has_code_ = false;
  std::unordered_map<std::string, CUfunction> functions_;
  std::map<std::string, Global> globals_;
};

class Library {
 public:
  explicit Library(std::shared_ptr<const Image> its_image) : image(std::move(its_image)) {}
  const std::shared_ptr<const Image> image;
  CUlibrary handle = nullptr;

  CUresult add_kernels();
  CUkernel kernel(const std::string& name) const;
  const std::vector<CUkernel>& kernels() const { return kernels_; }
  // The module of this library in a context, loaded on first use.
  CUresult module(Context& context, std::shared_ptr<Module>* result);
  void unload();
  void forget(const Context& context);

 private:
  std::mutex mutex_;
  std::vector<CUkernel> kernels_;
  std::map<Context*, CUmodule> modules_;
};

using ModuleTable = HandleTable<Module, CUmodule, HandleKind::module>;
using FunctionTable = HandleTable<Function, CUfunction, HandleKind::function>;
using LibraryTable = HandleTable<Library, CUlibrary, HandleKind::library>;
using KernelTable = HandleTable<Kernel, CUkernel, HandleKind::kernel>;
ModuleTable& modules();
FunctionTable& functions();
LibraryTable& libraries();
KernelTable& kernels();

// Reads an image as cuModuleLoadData gets it; its answers for bad ones.
CUresult read_image(const void* data, std::shared_ptr<const Image>* image);
// ... from a file.
CUresult read_image_file(const char* path, std::shared_ptr<const Image>* image);

CUresult load_module(Context& context, std::shared_ptr<const Image> image, std::shared_ptr<Module>* module);
void unload_module(CUmodule handle);
void release_modules(Context& context);

// Before a launch of it: with lazy loading its module's code comes to the device now.
CUresult load_code(const Function& function);

// A CUfunction, or a CUkernel in its place: the function in `context`. CUDA_ERROR_INVALID_HANDLE when it is neither.
CUresult find_function(Context& context, CUfunction handle, std::shared_ptr<Function>* function);
CUresult kernel_function(Context& context, CUkernel handle, CUfunction* function);

}  // namespace reprise::sim

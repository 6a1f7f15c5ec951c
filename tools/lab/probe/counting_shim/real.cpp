#include "tools/lab/probe/counting_shim/real.h"

#include <cuda.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <initializer_list>

namespace reprise::count {
namespace {

// A name with a slash is not matched against our SONAME; RTLD_LOCAL keeps the driver's names out of the program's way.
void* open_driver() noexcept {
  const char* chosen = std::getenv("REPRISE_COUNT_DRIVER");
  if (chosen && *chosen == '/') return dlopen(chosen, RTLD_NOW | RTLD_LOCAL);
  for (const char* path : {"/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
                           "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}) {
    if (void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

extern "C" CUresult missing_function() { return CUDA_ERROR_NOT_FOUND; }

}  // namespace

void* real_symbol(const char* name) noexcept {
  static void* const library = open_driver();
  return library ? dlsym(library, name) : nullptr;
}

// For the thunks. A driver older than our headers lacks some names: a program that found them here is told so.
extern "C" __attribute__((visibility("hidden"))) void* reprise_count_resolve(size_t index) {
  void* function = real_symbol(reprise_count_rows[index].symbol);
  return function ? function : reinterpret_cast<void*>(missing_function);
}

}  // namespace reprise::count

#include "tools/lab/probe/measure/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <vector>

#define REPRISE_PROBE_TEXT_(name) #name
#define REPRISE_PROBE_TEXT(name) REPRISE_PROBE_TEXT_(name)

namespace reprise::probe {
namespace {

void* open_library(std::string& tried) {
  std::vector<std::string> names;
  if (const char* chosen = std::getenv("REPRISE_DRIVER"); chosen && *chosen) {
    names = {chosen};
  } else {
    names = {"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
             "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
  }
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (tried.empty()) tried = dlerror();
  }
  return nullptr;
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

Result<Driver> open_driver() {
  std::string problem;
  Driver driver;
  driver.library = open_library(problem);
  if (!driver.library) return Status(StatusCode::not_found, "no CUDA driver: " + problem);
#define REPRISE_PROBE_FUNCTION(name) find(driver.library, REPRISE_PROBE_TEXT(name), driver.name);
#include "tools/lab/probe/measure/driver_functions.def"
#undef REPRISE_PROBE_FUNCTION
  if (const link_map* map = nullptr; dlinfo(driver.library, RTLD_DI_LINKMAP, &map) == 0 && map) {
    char* absolute = realpath(map->l_name, nullptr);
    driver.path = absolute ? absolute : map->l_name;
    std::free(absolute);
  }
  driver.simulated = dlsym(driver.library, "repriseSimGetStats") != nullptr;
  if (!driver.cuInit || !driver.cuDeviceGetCount || !driver.cuGetErrorName || !driver.cuGetProcAddress) {
    return Status(StatusCode::not_found, fmt::format("{} is no CUDA driver of version 12 or later", driver.path));
  }
  return driver;
}

Status check(const Driver& driver, CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return Status::success();
  const char* name = nullptr;
  if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) name = "unknown error";
  const bool missing = result == CUDA_ERROR_NOT_SUPPORTED;
  return {missing ? StatusCode::unsupported : StatusCode::io_error, fmt::format("{}: {}", what, name)};
}

}  // namespace reprise::probe

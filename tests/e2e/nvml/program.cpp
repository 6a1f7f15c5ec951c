// Prints what NVML and CUDA tell of device memory, in MiB: before CUDA begins, when it has begun, and with 4 MiB taken.
// NVML is found as frameworks find it, by name.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>

#include "preload/driver/nvml.h"

namespace nvml = reprise::nvml;

namespace {

void* library = nullptr;

template <typename... Arguments>
int call(const char* name, Arguments... arguments) {
  void* const function = dlsym(library, name);
  return function == nullptr ? -1 : reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

void tell(const char* when) {
  for (unsigned index = 0; index < 2; ++index) {
    nvml::Device device = nullptr;
    nvml::MemoryFigures memory{};
    nvml::MemoryFiguresV2 more{2, 0, 0, 0, 0};
    call("nvmlDeviceGetHandleByIndex_v2", index, &device);
    call("nvmlDeviceGetMemoryInfo", device, &memory);
    call("nvmlDeviceGetMemoryInfo_v2", device, &more);
    std::printf("%s, device %u: %llu = %llu + %llu, %llu = %llu + %llu + %llu\n", when, index,
                static_cast<unsigned long long>(memory.total >> 20), static_cast<unsigned long long>(memory.free >> 20),
                static_cast<unsigned long long>(memory.used >> 20), static_cast<unsigned long long>(more.total >> 20),
                static_cast<unsigned long long>(more.free >> 20), static_cast<unsigned long long>(more.used >> 20),
                static_cast<unsigned long long>(more.reserved >> 20));
  }
  size_t free = 0;
  size_t total = 0;
  if (cuMemGetInfo(&free, &total) == CUDA_SUCCESS) std::printf("%s, CUDA: %zu of %zu\n", when, free >> 20, total >> 20);
}

}  // namespace

int main() {
  library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return std::puts("no NVML") < 0 ? 1 : 0;
  call("nvmlInit_v2");
  tell("before");
  CUdevice device = 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  CUdeviceptr address = 0;
  if (cuMemAlloc(&address, 4 << 20) != CUDA_SUCCESS) return 1;
  tell("taken");
  unsigned a = 0, b = 0, c = 0, d = 0;
  const int rows = call("nvmlDeviceGetRemappedRows", reinterpret_cast<nvml::Device>(uintptr_t{5}), &a, &b, &c, &d);
  std::printf("rows %d: %u %u %u %u, power %d\n", rows, a, b, c, d,
              call("nvmlDeviceGetPowerUsage", reinterpret_cast<nvml::Device>(uintptr_t{1}), &a));
  return cuMemFree(address) == CUDA_SUCCESS ? 0 : 1;
}

// What the programs that call a CUDA library share: the driver by dlopen of its plain name (so that a preloaded shim is
// found first), device memory, the library, and the purity test. They link nothing of CUDA.
#pragma once
#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

extern "C" const unsigned char reprise_probe_kernels[];  // the probe's own, as in kernels.S

namespace victim {

inline constexpr int kSkipped = 77;

// Ends the program with a line on stderr: these programs have nothing to clean up that the driver does not.
[[noreturn]] inline void stop(const char* what, int code) {
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(1);
}
inline void expect(int code, const char* what) {
  if (code != 0) stop(what, code);
}

template <typename Function>
Function find(void* library, const char* name) {
  auto function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) stop(name, -1);
  return function;
}
#define VICTIM_TEXT_(name) #name
#define VICTIM_TEXT(name) VICTIM_TEXT_(name)
#define VICTIM_FUNCTION(library, name) victim::find<decltype(&::name)>(library, VICTIM_TEXT(name))

inline void* open_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (library) return library;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(kSkipped);
}

struct Device {
  Device() : driver(open_library("libcuda.so.1")) {
    CUdevice device = 0;
    expect(VICTIM_FUNCTION(driver, cuInit)(0), "cuInit");
    expect(VICTIM_FUNCTION(driver, cuDeviceGet)(&device, 0), "cuDeviceGet");
    CUcontext context = nullptr;
    expect(VICTIM_FUNCTION(driver, cuDevicePrimaryCtxRetain)(&context, device), "cuDevicePrimaryCtxRetain");
    expect(VICTIM_FUNCTION(driver, cuCtxSetCurrent)(context), "cuCtxSetCurrent");
  }
  CUdeviceptr allocate(size_t bytes) const {
    CUdeviceptr address = 0;
    expect(VICTIM_FUNCTION(driver, cuMemAlloc)(&address, bytes), "cuMemAlloc");
    return address;
  }
  // Small numbers, the same in every run.
  CUdeviceptr allocate_random(size_t floats) const {
    std::mt19937 generator(1);
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> host(floats);
    for (float& value : host) value = values(generator);
    const CUdeviceptr address = allocate(floats * sizeof(float));
    expect(VICTIM_FUNCTION(driver, cuMemcpyHtoD)(address, host.data(), floats * sizeof(float)), "cuMemcpyHtoD");
    return address;
  }
  void poison(CUdeviceptr address, size_t bytes, unsigned char value) const {
    expect(VICTIM_FUNCTION(driver, cuMemsetD8)(address, value, bytes), "cuMemsetD8");
  }
  void synchronize() const { expect(VICTIM_FUNCTION(driver, cuCtxSynchronize)(), "cuCtxSynchronize"); }
  std::vector<unsigned char> read(CUdeviceptr address, size_t bytes) const {
    std::vector<unsigned char> host(bytes);
    expect(VICTIM_FUNCTION(driver, cuMemcpyDtoH)(host.data(), address, bytes), "cuMemcpyDtoH");
    return host;
  }
  void* driver;
};

// A kernel on a stream of its own that reads and writes memory while the library works.
class Neighbour {
 public:
  explicit Neighbour(const Device& device)
      : launch_(VICTIM_FUNCTION(device.driver, cuLaunchKernel)),
        in_(device.allocate(kWords * sizeof(float))),
        out_(device.allocate(kWords * sizeof(float))) {
    CUmodule module = nullptr;
    expect(VICTIM_FUNCTION(device.driver, cuModuleLoadData)(&module, reprise_probe_kernels), "cuModuleLoadData");
    expect(VICTIM_FUNCTION(device.driver, cuModuleGetFunction)(&kernel_, module, "probe_stream"), "probe_stream");
    expect(VICTIM_FUNCTION(device.driver, cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  void start() {
    uint64_t words = kWords;
    void* arguments[] = {&in_, &out_, &words};
    for (int i = 0; i < 4; ++i)
      expect(launch_(kernel_, 64, 1, 1, 256, 1, 1, 0, stream_, arguments, nullptr), "cuLaunchKernel");
  }

 private:
  static constexpr uint64_t kWords = 8 << 20;
  decltype(&::cuLaunchKernel) launch_;
  CUdeviceptr in_, out_;
  CUfunction kernel_ = nullptr;
  CUstream stream_ = nullptr;
};

// Runs `work` 100 times on a poisoned output (and workspace, where it has one) and compares all bits with the first
// time; then the same while another kernel runs.
inline void report_purity(const Device& device, const char* name, CUdeviceptr output, size_t bytes,
                          CUdeviceptr workspace, size_t workspace_bytes, const std::function<void()>& work) {
  constexpr int kRepeats = 100;
  static Neighbour neighbour(device);
  std::vector<unsigned char> first;
  for (const bool beside : {false, true}) {
    int equal = 0;
    for (int i = beside ? 1 : 0; i <= kRepeats; ++i) {
      device.poison(output, bytes, static_cast<unsigned char>(0xf0 + i % 16));
      if (workspace) device.poison(workspace, workspace_bytes, static_cast<unsigned char>(0xe0 + i % 16));
      if (beside) neighbour.start();
      work();
      device.synchronize();
      auto now = device.read(output, bytes);
      if (first.empty())
        first = std::move(now);
      else
        equal += now == first ? 1 : 0;
    }
    std::printf("{\"kernel\": \"%s, %s\", \"repeats\": %d, \"equal\": %d}\n", name,
                beside ? "another kernel beside" : "alone", kRepeats, equal);
    std::fflush(stdout);  // what was found stays, should the next one fail
  }
}

inline bool wants_purity(int argc, char** argv) { return argc > 1 && std::strcmp(argv[1], "--purity") == 0; }

}  // namespace victim

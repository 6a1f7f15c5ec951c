// What a launch costs the program's own thread: the bare driver, or whatever is preloaded around it. bench/overhead
// runs this program once per mode and makes the table. Times batches of launches; draining the device is not timed.
#include <benchmark/benchmark.h>
#include <cuda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kBatch = 256;
constexpr int kTensors = 3;

struct Device {
  CUfunction kernel = nullptr;
  CUdeviceptr tensors[kTensors] = {};
};

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "launch_bench: %s failed with %d\n", what, static_cast<int>(result));
  std::exit(1);
}

Device& device() {
  static Device& instance = *[] {
    auto* made = new Device;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    check(cuInit(0), "cuInit");
    check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    const char* cubin = std::getenv("LAUNCH_BENCH_CUBIN");
    check(cuModuleLoad(&module, cubin == nullptr ? "bin/launch_bench.cubin" : cubin), "cuModuleLoad");
    check(cuModuleGetFunction(&made->kernel, module, "nothing"), "cuModuleGetFunction");
    for (auto& tensor : made->tensors) {
      check(cuMemAlloc(&tensor, 1 << 20), "cuMemAlloc");
      check(cuMemsetD32(tensor, 0, (1 << 20) / 4), "cuMemsetD32");
    }
    return made;
  }();
  return instance;
}

void launch_batch(Device& target, int count) {
  int words = 0;
  void* parameters[] = {&target.tensors[0], &target.tensors[1], &target.tensors[2], &words};
  for (int i = 0; i < count; ++i) {
    check(cuLaunchKernel(target.kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  }
}

void BM_launch(benchmark::State& state) {
  Device& target = device();
  launch_batch(target, 1);
  check(cuCtxSynchronize(), "cuCtxSynchronize");
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    launch_batch(target, kBatch);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count() / kBatch);
    check(cuCtxSynchronize(), "cuCtxSynchronize");
  }
}
BENCHMARK(BM_launch)->UseManualTime()->Unit(benchmark::kNanosecond)->MinTime(1e-4)->Repetitions(15);

}  // namespace

BENCHMARK_MAIN();

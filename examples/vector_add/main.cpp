// Adds two vectors by the CUDA driver API: loads vector_add.cubin, which lies beside the program, and checks the
// result.
#include <cuda.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

static void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS) name = "unknown error";
  std::fprintf(stderr, "vector_add: %s: %s\n", what, name);
  std::exit(1);
}

// Beside the program, wherever it was called from, by PATH for example.
static std::string cubin_path() {
  char path[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t slash = program.rfind('/');
  return (slash == std::string::npos ? std::string() : program.substr(0, slash + 1)) + "vector_add.cubin";
}

static int wrong_sums(const std::vector<float>& sum) {
  int wrong = 0;
  for (size_t i = 0; i < sum.size(); ++i) wrong += sum[i] == 3.0f * static_cast<float>(i) ? 0 : 1;
  return wrong;
}

int main(int argument_count, char** arguments) {
  const int count = argument_count > 1 ? std::atoi(arguments[1]) : 1000000;
  if (count < 1) {
    std::fprintf(stderr, "usage: vector_add [COUNT]\n");
    return 2;
  }
  check(cuInit(0), "cuInit");
  CUdevice device;
  CUcontext context;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module;
  CUfunction kernel;
  check(cuModuleLoad(&module, cubin_path().c_str()), "cuModuleLoad");
  check(cuModuleGetFunction(&kernel, module, "vector_add"), "cuModuleGetFunction");

  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  std::vector<float> a(static_cast<size_t>(count));
  std::vector<float> b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 2.0f * a[i];
  }
  CUdeviceptr device_a;
  CUdeviceptr device_b;
  CUdeviceptr device_sum;
  check(cuMemAlloc(&device_a, bytes), "cuMemAlloc");
  check(cuMemAlloc(&device_b, bytes), "cuMemAlloc");
  check(cuMemAlloc(&device_sum, bytes), "cuMemAlloc");
  check(cuMemcpyHtoD(device_a, a.data(), bytes), "cuMemcpyHtoD");
  check(cuMemcpyHtoD(device_b, b.data(), bytes), "cuMemcpyHtoD");
  void* parameters[] = {&device_a, &device_b, &device_sum, const_cast<int*>(&count)};
  const unsigned blocks = (static_cast<unsigned>(count) + 255) / 256;
  check(cuLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr), "cuLaunchKernel");
  std::vector<float> sum(a.size());
  check(cuMemcpyDtoH(sum.data(), device_sum, bytes), "cuMemcpyDtoH");

  for (const CUdeviceptr memory : {device_sum, device_b, device_a}) check(cuMemFree(memory), "cuMemFree");
  check(cuModuleUnload(module), "cuModuleUnload");
  check(cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
  const int wrong = wrong_sums(sum);
  std::printf("%d of %d sums are wrong\n", wrong, count);
  return wrong == 0 ? 0 : 1;
}

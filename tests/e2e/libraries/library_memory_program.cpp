// A program that makes a handle of a library that has memory of its own, and memory of the same size itself.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

extern "C" int cublasCreate_v2(void** handle);

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  void* handle = nullptr;
  CUdeviceptr memory = 0;
  const size_t bytes = std::strtoull(std::getenv("LIBRARY_BYTES"), nullptr, 10);
  const bool good = cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
                    cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS &&
                    cuCtxSetCurrent(context) == CUDA_SUCCESS && cublasCreate_v2(&handle) == 0 &&
                    cuMemAlloc(&memory, bytes) == CUDA_SUCCESS && cuMemFree(memory) == CUDA_SUCCESS &&
                    cuMemFree(reinterpret_cast<CUdeviceptr>(handle)) == CUDA_SUCCESS;
  std::puts(good ? "good" : "an error");
  return good ? 0 : 1;
}

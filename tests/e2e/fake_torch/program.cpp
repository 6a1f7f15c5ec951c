// Takes device memory as PyTorch's allocators do, or as another library of such a program, and ends with a code.
//   fake_torch_program LIBRARY blocks|tensors|segments|own CODE
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Value>
CUresult take(void* library, const char* name, Value* value) {
  using Take = CUresult (*)(Value*, size_t);
  const auto function = reinterpret_cast<Take>(dlsym(library, name));
  return function != nullptr ? function(value, 2 << 20) : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 100;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const char* const what = argv[2];
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUmemGenericAllocationHandle handle{};
  CUresult result = cuInit(0);
  if (result == CUDA_SUCCESS) result = cuDeviceGet(&device, 0);
  if (result == CUDA_SUCCESS) result = cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
  for (int i = 0; i < 3 && result == CUDA_SUCCESS; ++i) {
    if (std::strcmp(what, "blocks") == 0) result = take(library, "take_block", &memory);
    if (std::strcmp(what, "tensors") == 0) result = take(library, "take_tensor", &memory);
    if (std::strcmp(what, "segments") == 0) result = take(library, "take_segment", &handle);
    if (std::strcmp(what, "own") == 0) result = cuMemAlloc(&memory, 2 << 20);
  }
  std::printf("%d\n", static_cast<int>(result));
  return std::atoi(argv[3]);
}

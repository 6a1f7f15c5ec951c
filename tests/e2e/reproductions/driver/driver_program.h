// What the driver-API programs of this folder share. Each is an ordinary program that knows nothing of Reprise: it
// prints what it read, and ends with exit code 3 and one line on stderr at the first call that answers an error.
#pragma once
#include <cuda.h>

#include <cstdio>
#include <cstdlib>

namespace program {

inline constexpr size_t kMiB = 1 << 20;
inline constexpr int kFailed = 3;

// Ends the process at once: other threads may still be using the driver.
inline void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", call, name == nullptr ? "?" : name);
  std::_Exit(kFailed);
}

#define CHECK(call) program::check((call), #call)

// Device `ordinal` with its primary context current.
inline CUcontext open_device(int ordinal = 0) {
  CHECK(cuInit(0));
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, ordinal));
  CUcontext context = nullptr;
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  return context;
}

inline CUstream new_stream() {
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// `mebibytes` of device memory, every word of it `value` on return: non-blocking streams do not wait for a fill.
inline CUdeviceptr filled(size_t mebibytes, unsigned value) {
  CUdeviceptr tensor = 0;
  CHECK(cuMemAlloc(&tensor, mebibytes * kMiB));
  CHECK(cuMemsetD32(tensor, value, mebibytes * kMiB / 4));
  CHECK(cuCtxSynchronize());
  return tensor;
}

inline unsigned word(CUdeviceptr address) {
  unsigned value = 0;
  CHECK(cuMemcpyDtoH(&value, address, sizeof value));
  return value;
}

}  // namespace program

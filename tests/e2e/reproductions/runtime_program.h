// What the runtime programs of this folder share. Each checks every call and every launch, ends with exit code 3 and
// one line on stderr at the first error, and sets all device memory before it reads it.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/e2e/reproductions/kernels.cuh"

inline constexpr int kFailed = 3;

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s: %s\n", call, cudaGetErrorName(error));
  std::exit(kFailed);
}

#define CHECK(call) check((call), #call)
#define LAUNCH(...)                      \
  do {                                   \
    __VA_ARGS__;                         \
    check(cudaGetLastError(), "launch"); \
  } while (false)

inline dim3 blocks(size_t n) { return dim3(static_cast<unsigned>((n + 255) / 256)); }

inline float* zeros(size_t n, cudaStream_t stream = nullptr) {
  float* tensor = nullptr;
  CHECK(cudaMalloc(&tensor, n * sizeof(float)));
  CHECK(cudaMemsetAsync(tensor, 0, n * sizeof(float), stream));
  return tensor;
}

inline float* random_values(size_t n, unsigned seed, cudaStream_t stream = nullptr) {
  float* tensor = zeros(n, stream);
  LAUNCH(fill<<<blocks(n), 256, 0, stream>>>(tensor, n, seed));
  return tensor;
}

inline uint64_t hash(const std::vector<float>& values) {
  uint64_t sum = 1469598103934665603ull;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    sum = (sum ^ bits) * 1099511628211ull;
  }
  return sum;
}

// Prints a hash of the tensor.
inline void print(const char* name, const float* tensor, size_t n) {
  std::vector<float> host(n);
  CHECK(cudaMemcpy(host.data(), tensor, n * sizeof(float), cudaMemcpyDeviceToHost));
  std::printf("%s %016llx\n", name, static_cast<unsigned long long>(hash(host)));
  std::fflush(stdout);
}

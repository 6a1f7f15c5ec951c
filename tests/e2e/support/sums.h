// What the programs of the runtime library share whose output is sums of what they read. An error of a call ends them
// with exit code 3. Callers: carrying, facts, inference, audit.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "error: %s\n", cudaGetErrorName(error));
  std::exit(3);
}

template <typename T>
T* make(const std::vector<T>& content) {
  T* device = nullptr;
  check(cudaMalloc(&device, content.size() * sizeof(T)));
  check(cudaMemcpy(device, content.data(), content.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

inline float* make_numbers(int count, float scale) {
  std::vector<float> content(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) content[static_cast<size_t>(i)] = scale * static_cast<float>(i % 1000 + 1);
  return make(content);
}

inline unsigned hash(const void* device, int words) {
  std::vector<unsigned> host(static_cast<size_t>(words));
  check(cudaMemcpy(host.data(), device, host.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned sum = 0;
  for (const unsigned word : host) sum = sum * 31u + word;
  return sum;
}

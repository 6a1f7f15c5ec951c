// What the programs of this folder check with: each counts what went wrong and goes on.
#pragma once
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

static int failures = 0;

static void expect(bool good, const char* what, int line) {
  if (good) return;
  std::printf("line %d: %s\n", line, what);
  ++failures;
}
#define EXPECT(...) expect((__VA_ARGS__), #__VA_ARGS__, __LINE__)
#define OK(...) expect((__VA_ARGS__) == cudaSuccess, #__VA_ARGS__, __LINE__)

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(float);

static std::vector<float> read_back(const float* device, size_t count = kCount) {
  std::vector<float> host(count);
  OK(cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
  return host;
}

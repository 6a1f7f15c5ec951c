// An ordinary runtime-API program whose launches the counting shim must all see: plain launches, a per-thread stream, a
// graph, and stream-ordered allocation. Built with the shared and with the static runtime. Prints what it launched.
#include <cuda_runtime.h>

#include <cstdio>

#include "tools/lab/probe/subjects/victims/add_one.cuh"

namespace {

constexpr int kCount = 1 << 16;
constexpr int kPlain = 500;
constexpr int kStreamed = 300;

bool good(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return false;
}

void add(float* data, cudaStream_t stream) { add_one<<<kCount / 256, 256, 0, stream>>>(data, kCount); }

}  // namespace

int main() {
  float* data = nullptr;
  cudaStream_t stream = nullptr;
  if (!good(cudaMalloc(reinterpret_cast<void**>(&data), kCount * sizeof(float)), "cudaMalloc")) return 1;
  if (!good(cudaMemset(data, 0, kCount * sizeof(float)), "cudaMemset")) return 1;
  if (!good(cudaStreamCreate(&stream), "cudaStreamCreate")) return 1;
  for (int i = 0; i < kPlain; ++i) add(data, nullptr);
  if (!good(cudaDeviceSynchronize(), "cudaDeviceSynchronize")) return 1;
  for (int i = 0; i < kStreamed; ++i) add(data, stream);
  if (!good(cudaStreamSynchronize(stream), "cudaStreamSynchronize")) return 1;
  float first = 0;
  if (!good(cudaMemcpy(&first, data, sizeof(first), cudaMemcpyDeviceToHost), "cudaMemcpy")) return 1;
  std::printf("{\"launches\": %d, \"value\": %g}\n", kPlain + kStreamed, static_cast<double>(first));
  cudaStreamDestroy(stream);
  cudaFree(data);
  return first == static_cast<float>(kPlain + kStreamed) ? 0 : 1;
}

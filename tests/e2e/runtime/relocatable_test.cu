// A program of relocatable device code: a kernel with shared memory of its own, and variables with and without a value.
#include <cuda_runtime.h>

#include "expect.h"
#include "mirror.cuh"

int main() {
  constexpr size_t kMirrored = kTile * sizeof(float);
  float* data = nullptr;
  OK(cudaMalloc(&data, kMirrored));
  std::vector<float> host(kTile);
  for (int i = 0; i < kTile; ++i) host[static_cast<size_t>(i)] = static_cast<float>(i);
  OK(cudaMemcpy(data, host.data(), kMirrored, cudaMemcpyHostToDevice));
  mirror<<<1, 128>>>(data);
  OK(cudaGetLastError());
  OK(cudaDeviceSynchronize());
  EXPECT(read_back(data, kTile)[5] == static_cast<float>(kTile - 6));
  int seen = -1;
  OK(cudaMemcpyFromSymbol(&seen, with_value, sizeof seen));
  EXPECT(seen == 7);
  OK(cudaMemcpyFromSymbol(&seen, without_value, sizeof seen));
  EXPECT(seen == 0);
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, mirror));
  EXPECT(attributes.sharedSizeBytes == kMirrored);
  OK(cudaFree(data));
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}

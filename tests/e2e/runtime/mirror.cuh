// The kernel and the variables of relocatable_test.
#pragma once

constexpr int kTile = 2048;

__device__ int with_value = 7;
__device__ int without_value;

__global__ void mirror(float* data) {
  __shared__ float tile[kTile];
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += static_cast<int>(blockDim.x)) tile[i] = data[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < kTile; i += static_cast<int>(blockDim.x)) {
    data[i] = tile[kTile - 1 - i] + static_cast<float>(without_value);
  }
}

// Kernels and variables of the runtime test.
#pragma once

struct Affine {
  double factor;
  char offset;
};

__device__ int total = 5;
__constant__ float weights[3] = {1.0f, 10.0f, 100.0f};

__global__ void fill(float* out, int count, float value) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) out[i] = value + static_cast<float>(i);
}

template <typename T>
__global__ void affine(T* data, int count, Affine by) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] = static_cast<T>(data[i] * by.factor + by.offset);
}
template __global__ void affine<float>(float*, int, Affine);

__global__ void weigh(float* out) { out[threadIdx.x] = weights[threadIdx.x] * static_cast<float>(total); }

__global__ void count(int by) {
  if (threadIdx.x == 0) total += by;
}

__global__ void __launch_bounds__(64) small_blocks(int* out) { *out = 1; }

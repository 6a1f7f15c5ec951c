// Kernels as any program has them, compiled by nvcc for their names and layouts and by g++ as twins.
#pragma once

struct Pair {
  char tag;
  double value;
};

__device__ int counter = 3;
__constant__ float factors[4] = {1, 2, 3, 4};
__device__ inline float twice(float x) { return 2 * x; }

namespace nested {
template <typename T>
__global__ void scale(T* data, int n, T by, Pair pair) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) data[i] = twice(data[i]) * by * factors[i % 4] + static_cast<T>(pair.value) + static_cast<T>(pair.tag);
}
template __global__ void scale<float>(float*, int, float, Pair);
}  // namespace nested

// Which thread was where, in three dimensions.
__global__ void ranks(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 10000 + thread;
}

// Tree reduction with barriers; half of the threads leave the last rounds early. Dynamic shared memory.
extern __shared__ float partial[];
__global__ void __launch_bounds__(1024) sum_block(const float* in, float* out) {
  const unsigned t = threadIdx.x;
  partial[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = partial[0];
}

// A static shared array, and threads that end before the barrier.
__global__ void reverse_some(int* data, int n) {
  __shared__ int staged[256];
  const int t = static_cast<int>(threadIdx.x);
  if (t >= n) return;
  staged[t] = data[t];
  __syncthreads();
  data[t] = staged[n - 1 - t];
}

__global__ void shuffles(const float* in, float* out, unsigned* ballots) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = in[t];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  const float down = __shfl_down_sync(0xffffffffu, in[t], 1u, 8);
  const float up = __shfl_up_sync(0xffffffffu, in[t], 1u);
  const float third = __shfl_sync(0xffffffffu, in[t], 3);
  out[4 * t] = sum;
  out[4 * t + 1] = down;
  out[4 * t + 2] = up;
  out[4 * t + 3] = third;
  ballots[t] = __ballot_sync(0xffffffffu, in[t] > 8.0f ? 1 : 0);
}

// The halves of a warp go different ways and wait among themselves, a different number of times.
__global__ void divided(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  int value = lane;
  if (lane < 16) {
    for (int i = 0; i < 3; ++i) value += __shfl_xor_sync(0x0000ffffu, value, 1 << i);
  } else {
    value = __shfl_sync(0xffff0000u, value, 31);
  }
  out[lane] = value;
}

// Lanes that have ended are not waited for, whether they end before the others wait or after.
__global__ void ended_lanes(unsigned* ballots) {
  const unsigned lane = threadIdx.x % 32;
  if (lane < 4) return;
  if (lane >= 28) {
    for (int i = 0; i < 3; ++i) __ballot_sync(0xf0000000u, 1);  // the others wait already
    return;
  }
  ballots[threadIdx.x] = __ballot_sync(0xffffffffu, lane % 2 == 0 ? 1 : 0);
}

__global__ void count_up(int* total) {
  atomicAdd(&counter, 1);
  atomicAdd(total, static_cast<int>(threadIdx.x));
  atomicMax(total + 1, static_cast<int>(threadIdx.x));
}

__global__ void fault_after_barrier(int* data, int* null_pointer) {
  data[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 5) *null_pointer = 1;
  __syncthreads();
  data[threadIdx.x] = 2;
}

__global__ void nothing() {}

// Kernels for the tests of the simulated driver: they run on a real device as well.
#pragma once

__device__ int shared_counter = 5;
__constant__ int table[4] = {10, 20, 30, 40};

// Holds its stream until the host sets *gate, so that tests decide when work completes.
extern "C" __global__ void hold(volatile int* gate) {
  while (*gate == 0) {
  }
}
extern "C" __global__ void add(int* values, int by, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] += by;
}
extern "C" __global__ void store(int* to, int value) { *to = value; }
extern "C" __global__ void read_globals(int* out) {
  out[0] = shared_counter;
  out[1] = table[2];
  shared_counter = 77;
}
extern "C" __global__ void empty() {}
// Without a twin.
extern "C" __global__ void hashed(int* values) { *values = 1; }
extern "C" __global__ void hashed_pair(int* first, int* second) { *first = *second; }
struct Wide {
  long long words[80];
};
// 640 bytes by value.
extern "C" __global__ void wide(Wide in, long long* out) { *out = in.words[0] + in.words[79]; }

// Kernels that pass data on in a variable that the host never names.
#pragma once

__device__ unsigned carried[256];

// One block of 256 threads.
__global__ void bring(unsigned* from, int words) {
  const int i = static_cast<int>(threadIdx.x);
  unsigned sum = carried[i];
  for (int at = i; at < words; at += 256) sum = sum * 31u + from[at];
  carried[i] = sum;
  from[i] += sum;
}

__global__ void take(unsigned* into) { into[threadIdx.x] = into[threadIdx.x] * 31u + carried[threadIdx.x]; }

// The one kernel of runtime_program.cu, apart so that it can be compiled for the host as well.
#pragma once

__global__ void add_one(float* data, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] += 1.0f;
}

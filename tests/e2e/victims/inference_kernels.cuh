// Layers of a forward pass, one element a thread.
#pragma once

// out = in mixed with the layer's weights, of which there are `rows` for each element.
__global__ void layer(const float* weights, const float* in, float* out, int rows) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int count = static_cast<int>(gridDim.x * blockDim.x);
  float sum = in[i];
  for (int row = 0; row < rows; ++row) sum = 0.5f * sum + weights[row * count + i];
  out[i] = sum;
}

// The sum of all layers' outputs would read the same bytes: this keeps them all alive until the end.
__global__ void add_to(const float* from, float* into) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  into[i] += from[i];
}

// Says that it only reads: in the iteration `when` it does not.
__global__ void look_at(const float* weights, int iteration, int when) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (iteration == when) const_cast<float*>(weights)[i] += 1.0f;
}

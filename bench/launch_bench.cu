// The kernel of launch_bench: three tensors and a count, as an element-wise kernel has; it does nothing.
extern "C" __global__ void nothing(float* a, float* b, float* c, int words) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < words) a[i] = b[i] + c[i];
}

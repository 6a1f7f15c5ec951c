// Device code whose image the parser is tested on: parameters of many sizes, globals, constants, shared memory.
struct Large {
  double values[40];
  char last;
};

__constant__ float table[4] = {1, 2, 3, 4};
__device__ int counter = 7;
__device__ float zeros[100];

namespace nested {
template <typename T>
__global__ void __launch_bounds__(256) add(const T* a, T* b, int n, Large large) {
  __shared__ T staged[64];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  staged[threadIdx.x % 64] = a[i];
  __syncthreads();
  if (i < n) b[i] = staged[(threadIdx.x + 1) % 64] + large.values[3] * table[i % 4] + zeros[i % 100];
  atomicAdd(&counter, 1);
}
template __global__ void add<float>(const float*, float*, int, Large);
}  // namespace nested

extern "C" __global__ void mixed(char c, short s, void* p, unsigned long long q) {
  if (p != nullptr) *static_cast<char*>(p) = static_cast<char>(c + s + q);
}

extern "C" __global__ void none() {}

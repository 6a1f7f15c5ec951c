// A loop whose kernels pass data on in a __device__ variable: those that write it wait for large tensors, those that
// read it for one that always stays, so that only the variable keeps them in order. Prints hashes.
#include "../support/sums.h"
#include "carrying_kernels.cuh"

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 12;
  constexpr int kTensors = 12;
  constexpr int kWords = 1 << 18;
  unsigned* into = nullptr;
  check(cudaMalloc(&into, kWords * sizeof(unsigned)));
  check(cudaMemset(into, 1, kWords * sizeof(unsigned)));
  std::vector<unsigned*> tensors(kTensors);
  for (int k = 0; k < kTensors; ++k) {
    check(cudaMalloc(&tensors[static_cast<size_t>(k)], kWords * sizeof(unsigned)));
    check(cudaMemset(tensors[static_cast<size_t>(k)], k + 1, kWords * sizeof(unsigned)));
  }
  for (int i = 0; i < iterations; ++i) {
    for (unsigned* tensor : tensors) {
      bring<<<1, 256>>>(tensor, kWords);
      take<<<1, 256>>>(into);
    }
    check(cudaGetLastError());
    std::printf("%08x\n", hash(into, 256));
  }
  for (unsigned* tensor : tensors) std::printf("%08x\n", hash(tensor, kWords));
  return 0;
}

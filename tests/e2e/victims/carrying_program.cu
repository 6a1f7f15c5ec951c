// A loop whose kernels pass data on in a __device__ variable: those that write it wait for large tensors, those that
// read it for one that always stays, so that only the variable keeps them in order. Prints hashes.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "carrying_kernels.cuh"

namespace {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

unsigned hash(const unsigned* device, int words) {
  std::vector<unsigned> host(static_cast<size_t>(words));
  check(cudaMemcpy(host.data(), device, host.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned sum = 0;
  for (const unsigned word : host) sum = sum * 31u + word;
  return sum;
}

}  // namespace

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

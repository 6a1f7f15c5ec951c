// A loop of kernels that touch their operands alone, and by word of the command line of some that do not. Prints hashes
// after each iteration.
//
// audit_program ITERATIONS [follow] [table] [touch] [large] [later] [forever]
#include <cstring>

#include "../support/sums.h"
#include "kernels.cuh"

namespace {

constexpr unsigned kWords = 1 << 17;
constexpr unsigned kBlock = 256;
constexpr int kTensors = 10;

template <typename T>
T* drawn(size_t words, unsigned seed) {
  std::vector<unsigned> content(words * sizeof(T) / sizeof(unsigned));
  for (unsigned& word : content) word = (seed = seed * 1664525u + 1013904223u) | 0x11000000u;
  return reinterpret_cast<T*>(make(content));
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 8;
  const auto has = [&](const char* word) {
    for (int i = 2; i < argc; ++i) {
      if (std::strcmp(argv[i], word) == 0) return true;
    }
    return false;
  };
  unsigned* tensors[kTensors];
  for (unsigned i = 0; i < kTensors; ++i) tensors[i] = drawn<unsigned>(kWords, i + 1);
  auto* const table = drawn<unsigned long long>(kWords, 5);
  auto* const coded = drawn<unsigned long long>(512, 7);
  const unsigned long long code = reinterpret_cast<unsigned long long>(tensors[0]) ^ kCode;
  check(cudaMemcpy(coded, &code, sizeof code, cudaMemcpyHostToDevice));
  const bool follows = has("follow"), tabled = has("table"), touches = has("touch"), large = has("large");
  const bool later_too = has("later"), forever = has("forever");
  make_table<<<1, kBlock>>>(table, tensors[3]);
  const unsigned grid = kWords / kBlock;
  for (int i = 0; i < iterations || forever; ++i) {
    unsigned* made[4] = {};
    for (unsigned*& tensor : made) check(cudaMalloc(&tensor, kWords * sizeof(unsigned)));
    for (int j = 0; j < 4; ++j) mix<<<grid, kBlock>>>(tensors[j], tensors[j + 1], made[j]);
    if (follows) follow<<<grid, kBlock>>>(coded, tensors[8]);
    if (later_too) later<<<grid, kBlock>>>(coded, tensors[8], i >= 7 ? 1u : 0u);
    if (tabled) by_table<<<grid, kBlock>>>(table, tensors[8]);
    if (touches) touch<<<4, kBlock>>>(tensors[9], tensors[8], 4 * kBlock);
    if (touches && large) touch<<<grid, kBlock>>>(tensors[9], tensors[8], kWords);
    for (int j = 4; j-- > 0;) update<<<grid, kBlock>>>(tensors[j + 4], made[j]);
    mix<<<grid, kBlock>>>(tensors[4], tensors[7], tensors[0]);
    for (unsigned* const tensor : made) check(cudaFree(tensor));
    check(cudaGetLastError());
    std::printf("%08x %08x\n", hash(tensors[8], kWords), hash(tensors[0], kWords));
    std::fflush(stdout);
  }
  for (const unsigned* tensor : tensors) std::printf("final %08x\n", hash(tensor, kWords));
  return 0;
}

// Calls kernels of every habit in a loop and prints hashes of all tensors after each iteration: what was launched more
// often than here, or from other bytes, would show.
#include <algorithm>

#include "../support/sums.h"
#include "facts_kernels.cuh"

namespace {

constexpr int kCount = 1 << 17;
constexpr int kBlock = 256;
constexpr int kZeroBias = 11;  // up to this iteration it is all zero

}  // namespace

int main(int argc, char** argv) {
  const int iterations = argc > 1 ? std::atoi(argv[1]) : 6;
  // `step` moves nothing before this iteration.
  const int warm_up = argc > 2 ? std::atoi(argv[2]) : 0;
  // In this iteration a kernel waits for a number that is there.
  const int waiting = argc > 3 ? std::atoi(argv[3]) : -1;
  float* tensors[9];
  for (int i = 0; i < 8; ++i) tensors[i] = make_numbers(kCount, 0.25f + static_cast<float>(i));
  std::vector<float> content(kCount, 1.25f);
  const float* const fixed = make(content);
  std::fill(content.end() - 32, content.end(), 0.0f);
  float* const workspace = make(content);
  tensors[8] = make(content);
  float* const bias = make(std::vector<float>(kCount, 0.0f));
  std::vector<int> numbers(kCount);
  for (int i = 0; i < kCount; ++i) numbers[static_cast<size_t>(i)] = (i * 7) % 1009;
  const int* const index = make(numbers);
  unsigned* const counter = make(std::vector<unsigned>{5});
  float* const* const table = make(std::vector<float*>{tensors[0], tensors[7]});
  for (int i = 0; i < iterations; ++i) {
    const int grid = kCount / kBlock;
    scale<<<grid, kBlock>>>(tensors[0], tensors[1]);
    accumulate<<<grid, kBlock>>>(tensors[1], tensors[2]);
    first_half<<<grid, kBlock>>>(tensors[2], tensors[3], kCount);
    clear<<<grid, kBlock>>>(tensors[4]);
    shift<<<grid, kBlock>>>(tensors[2], bias, tensors[4]);
    gather<<<grid, kBlock>>>(index, tensors[2], tensors[5]);
    step<<<grid, kBlock>>>(tensors[6], tensors[5], i < warm_up ? 0.0f : 0.125f);
    count<<<1, kBlock>>>(counter, tensors[1]);
    add_in_place<<<grid, kBlock>>>(tensors[0], tensors[6]);
    by_table<<<grid, kBlock>>>(table);
    split<<<grid, kBlock>>>(fixed, workspace, tensors[8], kCount);
    if (i == waiting) waits<<<grid, kBlock>>>(fixed, tensors[8]);
    if (i == kZeroBias) accumulate<<<grid, kBlock>>>(tensors[3], bias);
    check(cudaGetLastError());
    for (const float* tensor : tensors) std::printf("%08x ", hash(tensor, kCount));
    std::printf("\n");
  }
  return 0;
}

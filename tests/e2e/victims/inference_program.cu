// An inference loop: weights that nothing changes, outputs of layers that are all needed at the end of each batch.
// Prints a hash of each batch's result.
//
//   inference_program [layers] [rows of weights for each output] [elements of an output] [batches] [every] [secretly]
//
// every: after so many batches one layer's weights are replaced (0: never). secretly: in this batch a kernel that takes
// weights as const changes them (0: never).
#include "../support/sums.h"
#include "inference_kernels.cuh"

namespace {

constexpr int kBlock = 256;

int argument(int argc, char** argv, int index, int standard) {
  return argc > index ? std::atoi(argv[index]) : standard;
}

}  // namespace

int main(int argc, char** argv) {
  const int layers = argument(argc, argv, 1, 8), rows = argument(argc, argv, 2, 2);
  const int count = argument(argc, argv, 3, 1 << 17) / kBlock * kBlock, batches = argument(argc, argv, 4, 12);
  const int every = argument(argc, argv, 5, 0), secretly = argument(argc, argv, 6, 0);
  std::vector<float*> weights;
  for (int i = 0; i < layers; ++i) weights.push_back(make_numbers(rows * count, 0.01f + static_cast<float>(i)));
  float* const input = make_numbers(count, 0.5f);
  for (int batch = 1; batch <= batches; ++batch) {
    std::vector<float*> outputs;
    const float* from = input;
    for (int i = 0; i < layers; ++i) {
      float* out = nullptr;
      check(cudaMalloc(&out, static_cast<size_t>(count) * sizeof(float)));
      layer<<<count / kBlock, kBlock>>>(weights[static_cast<size_t>(i)], from, out, rows);
      look_at<<<count / kBlock, kBlock>>>(weights[static_cast<size_t>(i)], batch, secretly);
      outputs.push_back(out);
      from = out;
    }
    for (int i = layers - 1; i > 0; --i) {
      add_to<<<count / kBlock, kBlock>>>(outputs[static_cast<size_t>(i)], outputs[static_cast<size_t>(i - 1)]);
    }
    std::printf("%08x\n", hash(outputs[0], count));
    for (float* out : outputs) check(cudaFree(out));
    if (every != 0 && batch % every == 0) {
      std::vector<float> fresh(static_cast<size_t>(rows) * static_cast<size_t>(count),
                               0.125f * static_cast<float>(batch));
      check(cudaMemcpy(weights[static_cast<size_t>(batch / every % layers)], fresh.data(), fresh.size() * sizeof(float),
                       cudaMemcpyHostToDevice));
    }
  }
  return 0;
}

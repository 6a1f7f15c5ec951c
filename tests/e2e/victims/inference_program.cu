// An inference loop: weights that nothing changes, outputs of layers that are all needed at the end of each batch.
// Prints a hash of each batch's result.
//
//   inference_program [layers] [rows of weights for each output] [elements of an output] [batches] [every] [secretly]
//
// every: after so many batches one layer's weights are replaced (0: never). secretly: in this batch a kernel that takes
// weights as const changes them (0: never).
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "inference_kernels.cuh"

namespace {

constexpr int kBlock = 256;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

float* make_numbers(int count, float scale) {
  std::vector<float> content(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) content[static_cast<size_t>(i)] = scale * static_cast<float>(i % 1000 + 1);
  float* device = nullptr;
  check(cudaMalloc(&device, content.size() * sizeof(float)));
  check(cudaMemcpy(device, content.data(), content.size() * sizeof(float), cudaMemcpyHostToDevice));
  return device;
}

unsigned hash(const float* device, int count) {
  std::vector<unsigned> host(static_cast<size_t>(count));
  check(cudaMemcpy(host.data(), device, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  unsigned sum = 0;
  for (const unsigned word : host) sum = sum * 31u + word;
  return sum;
}

int argument(int argc, char** argv, int index, int standard) {
  return argc > index ? std::atoi(argv[index]) : standard;
}

}  // namespace

int main(int argc, char** argv) {
  const int layers = argument(argc, argv, 1, 8);
  const int rows = argument(argc, argv, 2, 2);
  const int count = argument(argc, argv, 3, 1 << 17) / kBlock * kBlock;
  const int batches = argument(argc, argv, 4, 12);
  const int every = argument(argc, argv, 5, 0);
  const int secretly = argument(argc, argv, 6, 0);
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

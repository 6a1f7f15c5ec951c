// resetter [WORDS [STEPS]]: cudaDeviceReset between two trainings of one process, with memory still allocated; then a
// second reset and a short third training.
#include "tests/e2e/reproductions/runtime_program.h"

namespace {

void train(size_t n, unsigned steps, unsigned layers, unsigned seed) {
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  std::vector<float*> weights;
  for (unsigned l = 0; l < layers; ++l) weights.push_back(random_values(n, l + seed, stream));
  for (unsigned i = 0; i < steps; ++i) {
    std::vector<float*> activations = {random_values(n, i, stream)};
    for (float* weight : weights) {
      float* next = zeros(n, stream);
      LAUNCH(mix<<<blocks(n), 256, 0, stream>>>(next, activations.back(), weight, n));
      activations.push_back(next);
    }
    for (size_t l = layers; l-- > 0;) {
      LAUNCH(mix<<<blocks(n), 256, 0, stream>>>(activations[l], activations[l + 1], weights[l], n));
      LAUNCH(axpy<<<blocks(n), 256, 0, stream>>>(weights[l], activations[l], 0.05f, n));
    }
    CHECK(cudaStreamSynchronize(stream));
    for (float* tensor : activations) CHECK(cudaFree(tensor));
  }
  for (const float* weight : weights) print("weight", weight, n);
}

}  // namespace

int main(int argc, char** argv) {
  const size_t n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 15;
  const unsigned steps = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 24;
  train(n, steps, 8, 0);
  CHECK(cudaDeviceReset());
  std::printf("reset\n");
  train(n * 2, steps, 6, 100);
  CHECK(cudaDeviceReset());
  train(n, 3, 4, 5);
  std::printf("end\n");
  return 0;
}

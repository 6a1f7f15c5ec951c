// hidden_plan [WORDS [LAYERS]]: a training step that repeats exactly, but for a table of pointers which a kernel built
// once and which every step reads through.
#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr int kSteps = 40;
constexpr int kHidden = 4;

struct Model {
  size_t n;
  std::vector<float*> weights;
  std::vector<float*> hidden;
  float** table;
};

void step(const Model& model, unsigned seed) {
  const size_t n = model.n;
  std::vector<float*> activations = {random_values(n, seed)};
  for (float* weight : model.weights) {
    float* next = zeros(n);
    LAUNCH(mix<<<blocks(n), 256>>>(next, activations.back(), weight, n));
    activations.push_back(next);
  }
  float* gathered = zeros(n);
  LAUNCH(gather<<<blocks(n), 256>>>(model.table, gathered, kHidden, n));
  for (size_t l = model.weights.size(); l-- > 0;) {
    float* weight = model.weights[l];
    LAUNCH(mix3<<<blocks(n), 256>>>(activations[l], activations[l + 1], weight, gathered, n));
    LAUNCH(axpy<<<blocks(n), 256>>>(weight, activations[l], 0.05f, n));
  }
  for (size_t j = 0; j < kHidden; ++j) LAUNCH(axpy<<<blocks(n), 256>>>(model.hidden[j], activations[j], 0.1f, n));
  for (float* tensor : activations) CHECK(cudaFree(tensor));
  CHECK(cudaFree(gathered));
  CHECK(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
  Model model = {argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 16, {}, {}, nullptr};
  const unsigned layers = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 8;
  for (unsigned j = 0; j < kHidden; ++j) model.hidden.push_back(random_values(model.n, j));
  for (unsigned l = 0; l < layers; ++l) model.weights.push_back(random_values(model.n, l + 50));
  CHECK(cudaMalloc(&model.table, kHidden * sizeof(float*)));
  CHECK(cudaMemset(model.table, 0, kHidden * sizeof(float*)));
  for (int j = 0; j < kHidden; ++j) LAUNCH(put<<<1, 32>>>(model.table, j, model.hidden[static_cast<size_t>(j)]));
  CHECK(cudaDeviceSynchronize());
  for (unsigned i = 0; i < kSteps; ++i) step(model, i);
  for (const float* tensor : model.hidden) print("hidden", tensor, model.n);
  for (const float* tensor : model.weights) print("weight", tensor, model.n);
  return 0;
}

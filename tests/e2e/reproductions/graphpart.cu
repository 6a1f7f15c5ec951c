// graphpart [WORDS [STEPS]]: a forward pass on two streams (fork, join; the second one ends before the capture does),
// captured and launched inside an eager loop, is captured anew every sixth step, where every other time the launchable
// graph is updated in place; the backward is eager.
#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kLayers = 8;
constexpr unsigned kEvery = 6;

class Program {
 public:
  explicit Program(size_t n) : n_(n) {
    CHECK(cudaStreamCreate(&main_));
    CHECK(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
    for (unsigned l = 0; l < kLayers; ++l) weights_.push_back(random_values(n, l, main_));
    for (size_t l = 0; l <= kLayers; ++l) activations_.push_back(zeros(n, main_));
    CHECK(cudaStreamSynchronize(main_));
  }

  void run(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i) {
      if (i % kEvery == 0) renew(i, i % (2 * kEvery) == kEvery);
      CHECK(cudaGraphLaunch(launchable_, main_));
      backward();
      if (i % kEvery == kEvery - 1) print("weight", weights_[i % kLayers], n_);
    }
    std::printf("updated %d\n", updated_);
    for (const float* tensor : weights_) print("weight", tensor, n_);
    for (const float* tensor : activations_) print("activation", tensor, n_);
  }

 private:
  cudaGraph_t capture_forward(unsigned seed) {
    cudaStream_t side = nullptr;
    CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
    LAUNCH(fill<<<blocks(n_), 256, 0, main_>>>(activations_[0], n_, seed));
    CHECK(cudaEventRecord(fork_, main_));
    CHECK(cudaStreamWaitEvent(side, fork_, 0));
    for (size_t l = 0; l < kLayers; ++l) {
      cudaStream_t stream = l % 2 == 1 ? side : main_;
      LAUNCH(mix<<<blocks(n_), 256, 0, stream>>>(activations_[l + 1], activations_[0], weights_[l], n_));
    }
    CHECK(cudaEventRecord(join_, side));
    CHECK(cudaStreamWaitEvent(main_, join_, 0));
    CHECK(cudaStreamDestroy(side));
    CHECK(cudaMemsetAsync(activations_[1], static_cast<int>(seed), n_, main_));
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(main_, &graph));
    return graph;
  }

  void renew(unsigned seed, bool in_place) {
    cudaGraph_t graph = capture_forward(seed);
    cudaGraphExecUpdateResultInfo result = {};
    if (in_place && cudaGraphExecUpdate(launchable_, graph, &result) == cudaSuccess) {
      ++updated_;
    } else {
      (void)cudaGetLastError();
      if (launchable_ != nullptr) CHECK(cudaGraphExecDestroy(launchable_));
      CHECK(cudaGraphInstantiate(&launchable_, graph, 0));
    }
    CHECK(cudaGraphDestroy(graph));
  }

  void backward() {
    float* gradient = zeros(n_, main_);
    for (size_t l = kLayers; l-- > 0;) {
      float* next = zeros(2 * n_, main_);
      LAUNCH(mix3<<<blocks(n_), 256, 0, main_>>>(next, gradient, activations_[l + 1], weights_[l], n_));
      LAUNCH(axpy<<<blocks(n_), 256, 0, main_>>>(weights_[l], next, -0.1f, n_));
      CHECK(cudaStreamSynchronize(main_));
      CHECK(cudaFree(gradient));
      gradient = next;
    }
    CHECK(cudaStreamSynchronize(main_));
    CHECK(cudaFree(gradient));
  }

  size_t n_;
  cudaStream_t main_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  std::vector<float*> weights_, activations_;
  cudaGraphExec_t launchable_ = nullptr;
  int updated_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Program program(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1 << 16);
  program.run(argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 36);
  return 0;
}

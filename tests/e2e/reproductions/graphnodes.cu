// graphnodes [change]: a forward pass as a graph that is built node by node (memset, kernels, a copy on the device and
// one to the host), launched inside an eager loop. change: every third step changes what a node does, in the instance.
#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kLayers = 4;
constexpr size_t kOthers = 8;
constexpr unsigned kEvery = 3;
constexpr unsigned kSteps = 24;
constexpr size_t kWords = 1 << 16;

class Program {
 public:
  explicit Program(size_t n) : n_(n), host_(n) {
    for (unsigned l = 0; l < kLayers; ++l) weights_.push_back(random_values(n, l));
    for (unsigned l = 0; l < kOthers; ++l) others_.push_back(random_values(n, 100 + l));
    for (size_t l = 0; l <= kLayers; ++l) activations_.push_back(zeros(n));
    build();
  }

  void run(bool changes) {
    for (unsigned i = 0; i < kSteps; ++i) {
      if (changes && i % kEvery == kEvery - 1) change(i);
      CHECK(cudaGraphLaunch(launchable_, nullptr));
      CHECK(cudaDeviceSynchronize());
      std::printf("step %u called %d first %a last %a\n", i, called_, static_cast<double>(host_.front()),
                  static_cast<double>(host_.back()));
      for (size_t l = 0; l < kOthers; ++l) {
        LAUNCH(axpy<<<blocks(n_), 256>>>(others_[l], others_[(l + 1) % kOthers], 0.25f, n_));
      }
      LAUNCH(axpy<<<blocks(n_), 256>>>(weights_[i % kLayers], others_[i % kOthers], -0.1f, n_));
    }
    for (const float* tensor : weights_) print("weight", tensor, n_);
    for (const float* tensor : activations_) print("activation", tensor, n_);
    for (const float* tensor : others_) print("other", tensor, n_);
  }

 private:
  static cudaKernelNodeParams kernel(const void* function, size_t n, void** arguments) {
    cudaKernelNodeParams node = {};
    node.func = const_cast<void*>(function);
    node.gridDim = blocks(n);
    node.blockDim = dim3(256);
    node.kernelParams = arguments;
    return node;
  }

  void build() {
    cudaGraph_t graph = nullptr;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemsetParams clear = {};
    clear.dst = activations_[0];
    clear.value = 0x3f;
    clear.elementSize = 1;
    clear.width = n_ * sizeof(float);
    clear.height = 1;
    cudaGraphNode_t before = nullptr;
    CHECK(cudaGraphAddMemsetNode(&before, graph, nullptr, 0, &clear));
    for (size_t l = 0; l < kLayers; ++l) {
      void* arguments[] = {&activations_[l + 1], &activations_[l], &weights_[l], &n_};
      const cudaKernelNodeParams layer = kernel(reinterpret_cast<const void*>(&mix), n_, arguments);
      CHECK(cudaGraphAddKernelNode(&layers_[l], graph, &before, 1, &layer));
      before = layers_[l];
    }
    cudaGraphNode_t copies[2];
    CHECK(cudaGraphAddMemcpyNode1D(&copies[0], graph, &before, 1, activations_[0], activations_[kLayers], n_ * 2,
                                   cudaMemcpyDeviceToDevice));
    CHECK(cudaGraphAddMemcpyNode1D(&copies[1], graph, &before, 1, host_.data(), activations_[kLayers],
                                   n_ * sizeof(float), cudaMemcpyDeviceToHost));
    const cudaHostNodeParams notify = {[](void* count) { ++*static_cast<int*>(count); }, &called_};
    cudaGraphNode_t last = nullptr;
    CHECK(cudaGraphAddHostNode(&last, graph, copies, 2, &notify));
    CHECK(cudaGraphInstantiate(&launchable_, graph, 0));
    graph_ = graph;
  }

  // Other operands for one of the layers.
  void change(unsigned step) {
    const size_t l = step / kEvery % kLayers;
    void* arguments[] = {&activations_[l + 1], &activations_[l], &weights_[(l + step) % kLayers], &n_};
    const cudaKernelNodeParams layer = kernel(reinterpret_cast<const void*>(&mix), n_, arguments);
    CHECK(cudaGraphExecKernelNodeSetParams(launchable_, layers_[l], &layer));
  }

  size_t n_;
  std::vector<float> host_;
  int called_ = 0;
  std::vector<float*> weights_, activations_, others_;
  cudaGraphNode_t layers_[kLayers] = {};
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t launchable_ = nullptr;
};

}  // namespace

int main(int argc, char** /*argv*/) {
  Program program(kWords);
  program.run(argc > 1);
  return 0;
}

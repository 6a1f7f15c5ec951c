// tables KIND [WORDS [STEPS]]: kernels reach tensors through pointers that lie in memory. KIND says how they got there:
// host (copied), big (copied in a table of 2 MiB), copy2d (copied as a rectangle), late (a host function writes them
// into pinned memory, which is copied behind it), device (stored by a kernel), pinned, managed (the table lies in such
// memory), list (linked nodes); or how a parameter hides its pointer: biased, split, packed.
#include <algorithm>
#include <cstring>
#include <string>

#include "tests/e2e/reproductions/runtime_program.h"

namespace {

constexpr size_t kHidden = 6;
constexpr size_t kLayers = 8;
constexpr size_t kBigSlots = 1 << 18;

struct Late {
  float** to;
  const std::vector<float*>* from;
};

void CUDART_CB write_late(void* data) {
  const auto* late = static_cast<const Late*>(data);
  std::copy(late->from->begin(), late->from->end(), late->to);
}

class Program {
 public:
  Program(std::string kind, size_t n) : kind_(std::move(kind)), n_(n) {
    CHECK(cudaStreamCreate(&stream_));
    for (unsigned j = 0; j < kHidden; ++j) hidden_.push_back(random_values(n, j, stream_));
    parameters_ = kind_ == "biased" || kind_ == "split" || kind_ == "packed";
    if (kind_ == "list") make_list();
    if (kind_ != "list" && !parameters_) make_table();
    CHECK(cudaStreamSynchronize(stream_));
  }

  void run(unsigned steps) {
    for (unsigned i = 0; i < steps; ++i) {
      step(i);
      if (i % 8 == 7) print("hidden", hidden_[i % kHidden], n_);
    }
    for (const float* tensor : hidden_) print("hidden", tensor, n_);
  }

 private:
  void make_table() {
    const size_t slots = kind_ == "big" ? kBigSlots : kHidden;
    const size_t bytes = slots * sizeof(float*);
    if (kind_ == "pinned" || kind_ == "managed") {
      if (kind_ == "pinned") CHECK(cudaMallocHost(&table_, bytes));
      if (kind_ == "managed") CHECK(cudaMallocManaged(&table_, bytes));
      CHECK(cudaStreamSynchronize(stream_));
      std::copy(hidden_.begin(), hidden_.end(), table_);
      return;
    }
    CHECK(cudaMalloc(&table_, bytes));
    CHECK(cudaMemsetAsync(table_, 0, bytes, stream_));
    CHECK(cudaStreamSynchronize(stream_));
    std::vector<float*> content(slots, nullptr);
    std::copy(hidden_.begin(), hidden_.end(), content.begin());
    if (kind_ == "host" || kind_ == "big") CHECK(cudaMemcpy(table_, content.data(), bytes, cudaMemcpyHostToDevice));
    if (kind_ == "copy2d") {
      constexpr size_t kRow = 2 * sizeof(float*);
      CHECK(cudaMemcpy2D(table_, kRow, content.data(), kRow, kRow, kHidden / 2, cudaMemcpyHostToDevice));
    }
    if (kind_ == "device") {
      for (size_t j = 0; j < kHidden; ++j) LAUNCH(put<<<1, 32, 0, stream_>>>(table_, static_cast<int>(j), hidden_[j]));
    }
    if (kind_ == "late") {
      CHECK(cudaMallocHost(&late_.to, bytes));
      std::memset(late_.to, 0, bytes);
      late_.from = &hidden_;
      CHECK(cudaLaunchHostFunc(stream_, write_late, &late_));
      CHECK(cudaMemcpyAsync(table_, late_.to, bytes, cudaMemcpyHostToDevice, stream_));
    }
  }

  void make_list() {
    CHECK(cudaMalloc(&nodes_, kHidden * sizeof(Node)));
    std::vector<Node> content;
    for (size_t j = 0; j < kHidden; ++j) content.push_back({j + 1 < kHidden ? nodes_ + j + 1 : nullptr, hidden_[j]});
    CHECK(cudaMemcpy(nodes_, content.data(), kHidden * sizeof(Node), cudaMemcpyHostToDevice));
  }

  void add_by_parameters(float* out) {
    for (const float* tensor : hidden_) {
      const auto address = reinterpret_cast<uintptr_t>(tensor);
      const auto low = static_cast<unsigned>(address);
      const auto high = static_cast<unsigned>(address >> 32);
      constexpr size_t kBias = 1 << 22;
      const auto* lowered = reinterpret_cast<const float*>(address - kBias * sizeof(float));
      if (kind_ == "biased") LAUNCH(add_biased<<<blocks(n_), 256, 0, stream_>>>(lowered, out, kBias, n_));
      if (kind_ == "split") LAUNCH(add_split<<<blocks(n_), 256, 0, stream_>>>(low, high, out, n_));
      if (kind_ == "packed") LAUNCH(add_packed<<<blocks(n_), 256, 0, stream_>>>(Packed{1, {low, high}}, out, n_));
    }
  }

  void step(unsigned seed) {
    float* input = random_values(n_, seed, stream_);
    std::vector<float*> activations = {input};
    for (size_t l = 0; l < kLayers; ++l) {
      float* next = zeros(n_, stream_);
      LAUNCH(mix<<<blocks(n_), 256, 0, stream_>>>(next, activations[l], input, n_));
      activations.push_back(next);
    }
    float* out = zeros(n_, stream_);
    if (parameters_) {
      add_by_parameters(out);
    } else if (kind_ == "list") {
      LAUNCH(gather_list<<<blocks(n_), 256, 0, stream_>>>(nodes_, out, n_));
    } else {
      LAUNCH(gather<<<blocks(n_), 256, 0, stream_>>>(table_, out, static_cast<int>(kHidden), n_));
    }
    for (size_t l = kLayers; l-- > 0;) {
      float* a = activations[l];
      LAUNCH(mix3<<<blocks(n_), 256, 0, stream_>>>(a, activations[l + 1], out, a, n_));
    }
    if (parameters_ || kind_ == "list") {
      for (size_t j = 0; j < kHidden; ++j) {
        LAUNCH(axpy<<<blocks(n_), 256, 0, stream_>>>(hidden_[j], activations[j], 0.01f, n_));
      }
    } else {
      LAUNCH(scatter<<<blocks(n_), 256, 0, stream_>>>(table_, activations[0], static_cast<int>(kHidden), n_));
    }
    LAUNCH(axpy<<<blocks(n_), 256, 0, stream_>>>(hidden_[seed % kHidden], out, 0.1f, n_));
    CHECK(cudaStreamSynchronize(stream_));
    for (float* tensor : activations) CHECK(cudaFree(tensor));
    CHECK(cudaFree(out));
  }

  std::string kind_;
  size_t n_;
  cudaStream_t stream_ = nullptr;
  std::vector<float*> hidden_;
  bool parameters_ = false;
  float** table_ = nullptr;
  Node* nodes_ = nullptr;
  Late late_ = {};
};

}  // namespace

int main(int argc, char** argv) {
  const size_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1 << 16;
  Program program(argc > 1 ? argv[1] : "host", n);
  program.run(argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 40);
  return 0;
}

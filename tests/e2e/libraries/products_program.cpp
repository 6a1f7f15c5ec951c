// A program all of whose launches are cuBLAS's, as a training of linear layers: forwards Y = W X, by cublasLtMatmul
// with a bias or cublasSgemmEx, backwards G = W' G and W -= 0.01 G X', with a handle that has a workspace of the
// program's. Prints a digest of the weights. `tables`: one of the products is by cublasSgemmBatched, whose matrices
// stand in a table on the device. Knows nothing of Reprise.
//
// products_program [tables] [--layers N] [--width N] [--iterations N]
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void check(int result, const char* what) {
  if (result == 0) return;
  std::printf("error: %s: %d\n", what, result);
  std::exit(3);
}

struct Options {
  bool tables = false;
  int layers = 12;
  int width = 256;
  int iterations = 12;
};

class Training {
 public:
  explicit Training(const Options& options) : options_(options), count_(size_t(options.width) * size_t(options.width)) {
    check(cublasCreate(&handle_), "cublasCreate");
    check(cublasLtCreate(&light_), "cublasLtCreate");
    workspace_ = make(kWorkspace / sizeof(float));
    check(cublasSetWorkspace(handle_, workspace_, kWorkspace), "cublasSetWorkspace");
    input_ = filled(count_, 1);
    bias_ = filled(size_t(options.width), 2);
    for (int layer = 0; layer < options.layers; ++layer) weights_.push_back(filled(count_, unsigned(layer) + 3));
    check(cudaMalloc(reinterpret_cast<void**>(&table_), 3 * sizeof(float*)), "cudaMalloc");
  }

  void step() {
    std::vector<float*> values = {input_};
    for (int layer = 0; layer < options_.layers; ++layer) {
      values.push_back(make(count_));
      layer % 2 == 0 ? forward_with_bias(layer, values) : forward(layer, values);
    }
    float* gradient = make(count_);
    check(cudaMemcpy(gradient, values.back(), count_ * sizeof(float), cudaMemcpyDeviceToDevice), "cudaMemcpy");
    for (int layer = options_.layers - 1; layer >= 0; --layer) {
      float* const before = make(count_);
      const bool table = options_.tables && layer == options_.layers / 2;
      const float step = -0.01f;
      product(CUBLAS_OP_N, CUBLAS_OP_T, gradient, values[size_t(layer)], weights_[size_t(layer)], step, 1);
      if (table) {
        product_of_table(weights_[size_t(layer)], gradient, before);
      } else {
        product(CUBLAS_OP_T, CUBLAS_OP_N, weights_[size_t(layer)], gradient, before, 1, 0);
      }
      check(cudaFree(gradient), "cudaFree");
      check(cudaFree(values[size_t(layer) + 1]), "cudaFree");
      gradient = before;
    }
    check(cudaFree(gradient), "cudaFree");
  }

  void print() {
    uint64_t digest = 0xcbf29ce484222325;
    std::vector<float> host(count_);
    for (const float* weights : weights_) {
      check(cudaMemcpy(host.data(), weights, count_ * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
      for (const float value : host) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        digest = (digest ^ bits) * 0x100000001b3;
      }
    }
    std::printf("weights %016llx\n", static_cast<unsigned long long>(digest));
  }

 private:
  static constexpr size_t kWorkspace = 1 << 20;

  static float* make(size_t count) {
    void* made = nullptr;
    check(cudaMalloc(&made, count * sizeof(float)), "cudaMalloc");
    return static_cast<float*>(made);
  }
  static float* filled(size_t count, unsigned seed) {
    std::vector<float> host(count);
    for (size_t i = 0; i < count; ++i) host[i] = float((i * 2654435761u + seed * 40503u) % 1000) / 20000.0f;
    float* const made = make(count);
    check(cudaMemcpy(made, host.data(), count * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    return made;
  }

  void product(cublasOperation_t op_a, cublasOperation_t op_b, const float* a, const float* b, float* c, float alpha,
               float beta) {
    const int n = options_.width;
    check(cublasSgemmEx(handle_, op_a, op_b, n, n, n, &alpha, a, CUDA_R_32F, n, b, CUDA_R_32F, n, &beta, c, CUDA_R_32F,
                        n),
          "cublasSgemmEx");
  }
  void forward(int layer, const std::vector<float*>& values) {
    product(CUBLAS_OP_N, CUBLAS_OP_N, weights_[size_t(layer)], values[size_t(layer)], values[size_t(layer) + 1], 1, 0);
  }

  void forward_with_bias(int layer, const std::vector<float*>& values) {
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t matrix;
    const auto n = uint64_t(options_.width);
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const float one = 1;
    const float zero = 0;
    check(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
          "epilogue");
    check(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_, sizeof bias_), "bias");
    check(cublasLtMatrixLayoutCreate(&matrix, CUDA_R_32F, n, n, int64_t(n)), "cublasLtMatrixLayoutCreate");
    check(cublasLtMatmul(light_, description, &one, weights_[size_t(layer)], matrix, values[size_t(layer)], matrix,
                         &zero, values[size_t(layer) + 1], matrix, values[size_t(layer) + 1], matrix, nullptr, nullptr,
                         0, nullptr),
          "cublasLtMatmul");
    check(cublasLtMatrixLayoutDestroy(matrix), "cublasLtMatrixLayoutDestroy");
    check(cublasLtMatmulDescDestroy(description), "cublasLtMatmulDescDestroy");
  }

  void product_of_table(float* a, float* b, float* c) {
    float* const host[] = {a, b, c};
    const float one = 1;
    const float zero = 0;
    const int n = options_.width;
    check(cudaMemcpy(table_, host, sizeof host, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cublasSgemmBatched(handle_, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &one, table_, n, table_ + 1, n, &zero,
                             table_ + 2, n, 1),
          "cublasSgemmBatched");
  }

  const Options options_;
  const size_t count_;
  cublasHandle_t handle_ = nullptr;
  cublasLtHandle_t light_ = nullptr;
  float* workspace_ = nullptr;
  float* input_ = nullptr;
  float* bias_ = nullptr;
  float** table_ = nullptr;
  std::vector<float*> weights_;
};

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "tables") == 0) options.tables = true;
    if (i + 1 == count) continue;
    if (std::strcmp(words[i], "--layers") == 0) options.layers = std::atoi(words[i + 1]);
    if (std::strcmp(words[i], "--width") == 0) options.width = std::atoi(words[i + 1]);
    if (std::strcmp(words[i], "--iterations") == 0) options.iterations = std::atoi(words[i + 1]);
  }
  Training training(options);
  for (int i = 0; i < options.iterations; ++i) training.step();
  training.print();
}

// cublasLtMatmul of the stand-in: attributes that the result depends on, and what is refused.
#include <cublasLt.h>

#include "tests/support/test.h"
#include "tools/device/tests/blas/products.h"

namespace reprise::sim::blas {
namespace {

using Bytes = std::vector<uint8_t>;

// A product of 6 x 4 by 4 x 5 halves, and how its descriptors are set.
class Matmul {
 public:
  Matmul() {
    EXPECT_EQ(cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&a, CUDA_R_16F, 6, 4, 8), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&b, CUDA_R_16F, 4, 5, 8), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&d, CUDA_R_16F, 6, 5, 8), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  }
  ~Matmul() {
    for (const auto layout : {a, b, d}) EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulPreferenceDestroy(preference), CUBLAS_STATUS_SUCCESS);
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  template <typename Value>
  void set(cublasLtMatmulDescAttributes_t which, Value value) const {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(description, which, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  template <typename Value>
  void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which, Value value) const {
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, which, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  void use_bias(uint32_t epilogue) const {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.at<const void>());
  }
  cublasLtHandle_t lt() const { return reinterpret_cast<cublasLtHandle_t>(static_cast<cublasHandle_t>(handle)); }

  cublasStatus_t heuristic() {
    int count = -1;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(lt(), description, a, b, d, d, preference, 1, &found, &count);
    EXPECT_EQ(count, status == CUBLAS_STATUS_SUCCESS ? 1 : 0);
    return status;
  }
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t* algorithm) const {
    return cublasLtMatmul(lt(), description, &alpha, in_a.at<>(), a, in_b.at<>(), b, &beta, in_c.at<>(), d, out.at<>(),
                          d, algorithm, workspace.at<>(), 256, nullptr);
  }

  const Handle handle;
  const Buffer in_a{512, 1}, in_b{512, 2}, in_c{512, 3}, out{512, 4}, bias{512, 5}, workspace{256, 6};
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatmulHeuristicResult_t found = {};
  float alpha = 1, beta = 0;
};

Bytes result_of(const std::function<void(Matmul&)>& changes) {
  Matmul product;
  changes(product);
  EXPECT_EQ(product.heuristic(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(product.multiply(&product.found.algo), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return product.out.read();
}

const auto kNothing = [](Matmul&) {};

TEST(LtMatmul, DependsOnEveryAttributeThatMatters) {
  const std::function<void(Matmul&)> changes[] = {
      kNothing,
      [](Matmul& p) { p.alpha = 2; },
      [](Matmul& p) { p.beta = 1; },
      [](Matmul& p) { p.use_bias(CUBLASLT_EPILOGUE_BIAS); },
      [](Matmul& p) { p.use_bias(CUBLASLT_EPILOGUE_RELU_BIAS); },
      [](Matmul& p) { p.use_bias(CUBLASLT_EPILOGUE_GELU_BIAS); },
      [](Matmul& p) { p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_RELU}); },
      [](Matmul& p) { p.set(p.a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{7}); },
      [](Matmul& p) { p.set(p.b, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{7}); },
      [](Matmul& p) { p.set(p.d, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{7}); },
      [](Matmul& p) { p.set(p.a, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{CUBLASLT_ORDER_ROW}); },
      [](Matmul& p) { p.set(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, int32_t{8}); },
      [](Matmul& p) {
        p.set(CUBLASLT_MATMUL_DESC_TRANSB, int32_t{CUBLAS_OP_T});
        p.set(p.b, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{5});
        p.set(p.b, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{4});
      },
      [](Matmul& p) {
        for (const auto layout : {p.a, p.b, p.d}) {
          p.set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2});
          p.set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t{64});
        }
      },
  };
  std::vector<Bytes> results;
  for (const auto& change : changes) {
    const Bytes result = result_of(change);
    EXPECT_EQ(result, result_of(change)) << results.size();
    for (const Bytes& other : results) EXPECT_NE(result, other) << results.size();
    results.push_back(result);
  }
}

TEST(LtMatmul, ABiasCountsRowByRowAndOnlyWhereTheEpilogueAddsIt) {
  const auto changed = [](uint32_t epilogue) {
    const auto with = [&](uint16_t value) {
      return result_of([&](Matmul& p) {
        p.use_bias(epilogue);
        p.bias.write(2 * 3, &value, sizeof value);
      });
    };
    return differences(with(1), with(2));
  };
  EXPECT_TRUE(changed(CUBLASLT_EPILOGUE_DEFAULT).empty());
  EXPECT_FALSE(changed(CUBLASLT_EPILOGUE_BIAS).empty());
  for (const size_t position : changed(CUBLASLT_EPILOGUE_BIAS)) EXPECT_EQ(position / 2 % 8, 3u);
}

TEST(LtMatmul, DependsOnTheAlgorithmAndNotOnHowTheDefaultOneCame) {
  Matmul product;
  ASSERT_EQ(product.heuristic(), CUBLAS_STATUS_SUCCESS);
  const auto with = [&](const cublasLtMatmulAlgo_t* algorithm) {
    EXPECT_EQ(product.multiply(algorithm), CUBLAS_STATUS_SUCCESS);
    return product.out.read();
  };
  const Bytes plain = with(nullptr);
  EXPECT_EQ(plain, with(&product.found.algo));
  cublasLtMatmulAlgo_t made;
  ASSERT_EQ(cublasLtMatmulAlgoInit(product.lt(), CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F,
                                   CUDA_R_16F, 0, &made),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(plain, with(&made));
  const int32_t splits = 4;
  ASSERT_EQ(cublasLtMatmulAlgoConfigSetAttribute(&made, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &splits, sizeof splits),
            CUBLAS_STATUS_SUCCESS);
  int32_t read = 0;
  size_t written = 0;
  ASSERT_EQ(cublasLtMatmulAlgoConfigGetAttribute(&made, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &read, sizeof read, &written),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(read, 4);
  EXPECT_EQ(written, sizeof read);
  EXPECT_NE(plain, with(&made));
}

TEST(LtMatmul, RefusesWhatItDoesNotDo) {
  const std::function<void(Matmul&)> changes[] = {
      [](Matmul& p) { p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_GELU_AUX_BIAS}); },
      [](Matmul& p) { p.set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, int32_t{CUDA_R_64F}); },
      [](Matmul& p) { p.set(p.b, CUBLASLT_MATRIX_LAYOUT_TYPE, int32_t{CUDA_R_16BF}); },
      [](Matmul& p) { p.set(p.d, CUBLASLT_MATRIX_LAYOUT_ORDER, int32_t{CUBLASLT_ORDER_COL32}); },
      [](Matmul& p) {
        p.set(CUBLASLT_MATMUL_DESC_POINTER_MODE, int32_t{CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO});
      },
  };
  for (const auto& change : changes) {
    Matmul product;
    const Bytes before = product.out.read();
    change(product);
    EXPECT_EQ(product.heuristic(), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(product.multiply(nullptr), CUBLAS_STATUS_NOT_SUPPORTED);
    EXPECT_EQ(before, product.out.read());
  }
  Matmul product;
  const void* scale = product.bias.at<>();
  EXPECT_EQ(
      cublasLtMatmulDescSetAttribute(product.description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof scale),
      CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(LtMatmul, RefusesWhatDoesNotFit) {
  const std::function<void(Matmul&)> changes[] = {
      [](Matmul& p) { p.set(p.b, CUBLASLT_MATRIX_LAYOUT_ROWS, uint64_t{3}); },
      [](Matmul& p) { p.set(p.d, CUBLASLT_MATRIX_LAYOUT_COLS, uint64_t{4}); },
      [](Matmul& p) { p.set(p.a, CUBLASLT_MATRIX_LAYOUT_LD, int64_t{5}); },
      [](Matmul& p) { p.set(p.a, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t{2}); },
      [](Matmul& p) { p.set(CUBLASLT_MATMUL_DESC_TRANSA, int32_t{7}); },
  };
  for (const auto& change : changes) {
    Matmul product;
    change(product);
    EXPECT_EQ(product.heuristic(), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(product.multiply(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  }
  Matmul product;
  const int32_t value = 0;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(product.description, CUBLASLT_MATMUL_DESC_TRANSA, &value, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(product.description, CUBLASLT_MATMUL_DESC_TRANSA, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, uint32_t{CUBLASLT_EPILOGUE_BIAS});
  EXPECT_EQ(product.multiply(nullptr), CUBLAS_STATUS_INVALID_VALUE) << "no bias given";
}

}  // namespace
}  // namespace reprise::sim::blas

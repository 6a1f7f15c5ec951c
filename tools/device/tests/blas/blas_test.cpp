// What a product of the cuBLAS stand-in depends on, reads and writes.
#include "tests/support/test.h"
#include "tools/device/tests/blas/products.h"

namespace reprise::sim::blas {
namespace {

using Bytes = std::vector<uint8_t>;

// One cublasGemmEx of floats. Seeds are those of the operands' contents, offsets are in elements.
struct Gemm {
  cublasOperation_t op_a = CUBLAS_OP_N, op_b = CUBLAS_OP_N;
  int m = 5, n = 3, k = 4;
  float alpha = 1, beta = 0;
  int lda = 8, ldb = 8, ldc = 8;
  cudaDataType ab = CUDA_R_32F, c = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  uint32_t seed_a = 1, seed_b = 2, seed_c = 3;
  size_t offset_a = 0;
  int changed_a = -1, changed_b = -1, changed_c = -1;  // an element that has another value
};

constexpr size_t kElements = 96;

void change(const Buffer& buffer, int element) {
  if (element < 0) return;
  const uint32_t other = 0x12345678;
  buffer.write(static_cast<size_t>(element) * 4, &other, 4);
}

Bytes result_of(const Gemm& gemm) {
  const Handle handle;
  const Buffer a(kElements * 4, gemm.seed_a), b(kElements * 4, gemm.seed_b), c(kElements * 4, gemm.seed_c);
  const Buffer scalars(8);
  change(a, gemm.changed_a);
  change(b, gemm.changed_b);
  change(c, gemm.changed_c);
  scalars.write(0, &gemm.alpha, 4);
  scalars.write(4, &gemm.beta, 4);
  const bool on_device = gemm.pointers == CUBLAS_POINTER_MODE_DEVICE;
  EXPECT_EQ(cublasSetMathMode(handle, gemm.math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetPointerMode_v2(handle, gemm.pointers), CUBLAS_STATUS_SUCCESS);
  const float* alpha = on_device ? scalars.at<float>() : &gemm.alpha;
  const float* beta = on_device ? scalars.at<float>(1) : &gemm.beta;
  EXPECT_EQ(cublasGemmEx(handle, gemm.op_a, gemm.op_b, gemm.m, gemm.n, gemm.k, alpha, a.at<float>(gemm.offset_a),
                         gemm.ab, gemm.lda, b.at<>(), gemm.ab, gemm.ldb, beta, c.at<>(), gemm.c, gemm.ldc, gemm.compute,
                         CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return c.read();
}

Bytes result_with(const std::function<void(Gemm&)>& changes) {
  Gemm gemm;
  changes(gemm);
  return result_of(gemm);
}

TEST(Product, RepeatsAndKeepsWhatLiesBetweenTheColumns) {
  const Bytes result = result_of({});
  EXPECT_EQ(result, result_of({}));
  const Buffer before(kElements * 4, Gemm().seed_c);
  const Bytes old = before.read();
  for (size_t element = 0; element < kElements; ++element) {
    const bool inside = element % 8 < 5 && element / 8 < 3;
    const Bytes was(old.begin() + static_cast<long>(element) * 4, old.begin() + static_cast<long>(element) * 4 + 4);
    const Bytes is(result.begin() + static_cast<long>(element) * 4,
                   result.begin() + static_cast<long>(element) * 4 + 4);
    EXPECT_EQ(was != is, inside) << element;
  }
}

struct Change {
  const char* what;
  std::function<void(Gemm&)> change;
};

TEST(Product, DependsOnEveryArgumentThatMatters) {
  const Change changes[] = {
      {"op(A)", [](Gemm& g) { g.op_a = CUBLAS_OP_T; }},
      {"op(B)", [](Gemm& g) { g.op_b = CUBLAS_OP_T; }},
      {"m", [](Gemm& g) { g.m = 4; }},
      {"n", [](Gemm& g) { g.n = 2; }},
      {"k", [](Gemm& g) { g.k = 3; }},
      {"alpha", [](Gemm& g) { g.alpha = 2; }},
      {"beta", [](Gemm& g) { g.beta = 1; }},
      {"lda", [](Gemm& g) { g.lda = 7; }},
      {"ldb", [](Gemm& g) { g.ldb = 7; }},
      {"ldc", [](Gemm& g) { g.ldc = 7; }},
      {"type of C", [](Gemm& g) { g.ab = CUDA_R_16F; }},
      {"types", [](Gemm& g) { g.ab = g.c = CUDA_R_16BF; }},
      {"compute", [](Gemm& g) { g.compute = CUBLAS_COMPUTE_32F_FAST_TF32; }},
      {"math mode", [](Gemm& g) { g.math = CUBLAS_TF32_TENSOR_OP_MATH; }},
      {"A", [](Gemm& g) { g.offset_a = 1; }},
      {"A's content", [](Gemm& g) { g.seed_a = 9; }},
      {"B's content", [](Gemm& g) { g.seed_b = 9; }},
  };
  std::vector<Bytes> results = {result_of({})};
  for (const Change& one : changes) {
    const Bytes result = result_with(one.change);
    for (const Bytes& other : results) EXPECT_NE(result, other) << one.what;
    results.push_back(result);
  }
}

TEST(Product, ReadsCOnlyWhereBetaIsNotZero) {
  const auto changed = [](float beta, cublasPointerMode_t mode) {
    const auto with = [=](int element) {
      return result_with([=](Gemm& g) {
        g.beta = beta;
        g.pointers = mode;
        g.changed_c = element;
      });
    };
    return differences(with(-1), with(9));  // row 1 of column 1
  };
  for (const auto mode : {CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE}) {
    EXPECT_TRUE(changed(0, mode).empty());
    EXPECT_TRUE(changed(-0.0f, mode).empty());
    const auto positions = changed(1, mode);
    ASSERT_FALSE(positions.empty());
    for (const size_t position : positions) EXPECT_EQ(position / 4, 9u);
  }
}

TEST(Product, IsTheSameWithScalarsOnTheHostAndOnTheDevice) {
  const auto on_device = [](float alpha) {
    return result_with([=](Gemm& g) {
      g.alpha = alpha;
      g.pointers = CUBLAS_POINTER_MODE_DEVICE;
    });
  };
  EXPECT_EQ(on_device(1), result_of({}));
  EXPECT_NE(on_device(2), on_device(1));
}

// Which elements of D change with one of A or B, for each transposition.
TEST(Product, AnElementDependsOnItsRowAndItsColumn) {
  for (const auto op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
    const auto with = [op](int a, int b) {
      return result_with([=](Gemm& g) {
        g.op_a = g.op_b = op;
        g.changed_a = a;
        g.changed_b = b;
      });
    };
    const Bytes plain = with(-1, -1);
    // Element 18: row 2 of column 2 in memory, which is op(A)'s (2, 2) and op(B)'s (2, 2) either way.
    for (const size_t position : differences(plain, with(18, -1))) EXPECT_EQ(position / 4 % 8, 2u);
    for (const size_t position : differences(plain, with(-1, 18))) EXPECT_EQ(position / 4 / 8, 2u);
    EXPECT_GE(differences(plain, with(18, -1)).size(), 3u);
    EXPECT_GE(differences(plain, with(-1, 18)).size(), 5u);
    // Padding: row 6 of a matrix with at most five rows.
    EXPECT_EQ(plain, with(6, 6));
  }
}

TEST(Product, OfNothingIsNothing) {
  const Buffer before(kElements * 4, Gemm().seed_c);
  EXPECT_EQ(result_with([](Gemm& g) { g.m = 0; }), before.read());
  EXPECT_EQ(result_with([](Gemm& g) { g.n = 0; }), before.read());
  EXPECT_NE(result_with([](Gemm& g) { g.k = 0; }), before.read());
}

// A batch by strides and one by a table of addresses on the device touch the same matrices.
TEST(Batch, StridesAndTablesReachTheirMatrices) {
  const Handle handle;
  const double one = 1, zero = 0;
  const Buffer a(64 * 8, 1), b(64 * 8, 2), c(64 * 8, 3);
  ASSERT_EQ(cublasDgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.at<double>(), 2, 4,
                                      b.at<double>(), 2, 4, &zero, c.at<double>(), 2, 8, 3),
            CUBLAS_STATUS_SUCCESS);
  const Bytes by_strides = c.read();
  const Buffer untouched(64 * 8, 3);
  for (const size_t position : differences(by_strides, untouched.read())) EXPECT_LT(position / 8 % 8, 4u);
  EXPECT_GE(differences(by_strides, untouched.read()).size(), 3u * 4 * 7);

  const auto by_table = [&](int second) {
    const Buffer to(64 * 8, 3), tables(9 * 8);
    const void* addresses[9];
    for (size_t i = 0; i < 3; ++i) {
      addresses[i] = a.at<double>(i == 1 ? static_cast<size_t>(second) : 4 * i);
      addresses[3 + i] = b.at<double>(4 * i);
      addresses[6 + i] = to.at<double>(8 * i);
    }
    tables.write(0, addresses, sizeof addresses);
    EXPECT_EQ(cublasDgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, tables.at<const double*>(), 2,
                                 tables.at<const double*>(3), 2, &zero, tables.at<double*>(6), 2, 3),
              CUBLAS_STATUS_SUCCESS);
    return to.read();
  };
  const Bytes tables = by_table(4);
  EXPECT_EQ(tables, by_table(4));
  const auto written = [&](const Bytes& result) {  // elements: a byte may be what it was by chance
    std::set<size_t> all;
    for (const size_t position : differences(result, untouched.read())) all.insert(position / 8);
    return all;
  };
  EXPECT_EQ(written(tables), written(by_strides));
  for (const size_t position : differences(tables, by_table(20))) EXPECT_EQ(position / 8 / 8, 1u);
  EXPECT_NE(tables, by_table(20));
}

TEST(Vectors, StepBackwardsFromTheirEnd) {
  const Handle handle;
  ASSERT_EQ(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  const auto dot = [&](int step, int changed) {
    const Buffer x(32 * 4, 1), y(32 * 4, 2), result(4, 3);
    change(x, changed);
    EXPECT_EQ(cublasSdot_v2(handle, 3, x.at<float>(), step, y.at<float>(), 1, result.at<float>()),
              CUBLAS_STATUS_SUCCESS);
    return result.read();
  };
  for (const int step : {2, -2}) {
    for (int element = 0; element < 8; ++element) {
      EXPECT_EQ(dot(step, -1) != dot(step, element), element % 2 == 0 && element < 6) << step << " " << element;
    }
  }
  EXPECT_NE(dot(2, -1), dot(-2, -1));
}

TEST(Vectors, AResultOnTheHostIsTheOneOnTheDevice) {
  const Handle handle;
  const Buffer x(32 * 8, 1), y(32 * 8, 2), result(8, 3);
  Bytes on_host(8);
  auto* to = reinterpret_cast<cuComplex*>(on_host.data());
  ASSERT_EQ(cublasCdotc_v2(handle, 5, x.at<cuComplex>(), 1, y.at<cuComplex>(), 1, to), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetPointerMode_v2(handle, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasCdotc_v2(handle, 5, x.at<cuComplex>(), 1, y.at<cuComplex>(), 1, result.at<cuComplex>()),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(on_host, result.read());
  ASSERT_EQ(cublasCdotu_v2(handle, 5, x.at<cuComplex>(), 1, y.at<cuComplex>(), 1, result.at<cuComplex>()),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(on_host, result.read()) << "not conjugated";
}

TEST(Vectors, GemvReadsTheVectorAsLongAsTheMatrixIsWide) {
  const Handle handle;
  const float one = 1, zero = 0;
  const auto gemv = [&](cublasOperation_t operation, int changed) {
    const Buffer a(kElements * 4, 1), x(kElements * 4, 2), y(kElements * 4, 3);
    change(x, changed);
    EXPECT_EQ(
        cublasSgemv_v2(handle, operation, 5, 3, &one, a.at<float>(), 8, x.at<float>(), 1, &zero, y.at<float>(), 2),
        CUBLAS_STATUS_SUCCESS);
    return y.read();
  };
  const Buffer before(kElements * 4, 3);
  for (const auto operation : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    const int length = operation == CUBLAS_OP_N ? 3 : 5, rows = operation == CUBLAS_OP_N ? 5 : 3;
    EXPECT_EQ(gemv(operation, length), gemv(operation, -1));
    EXPECT_NE(gemv(operation, length - 1), gemv(operation, -1));
    for (const size_t position : differences(gemv(operation, -1), before.read())) {
      EXPECT_TRUE(position / 4 % 2 == 0 && position / 4 < 2 * static_cast<size_t>(rows)) << position;
    }
  }
}

}  // namespace
}  // namespace reprise::sim::blas

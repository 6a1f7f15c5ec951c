// What works element by element: which elements of the result change with one of an operand.
#include "tests/support/test.h"
#include "tools/device/tests/blas/products.h"

namespace reprise::sim::blas {
namespace {

constexpr size_t kElements = 64;
constexpr size_t kBytes = kElements * sizeof(float);
using Work = std::function<cublasStatus_t(cublasHandle_t, const float* a, const float* b, float* c)>;

// C after the work, with another value in one element of A or B; -1: none.
std::vector<uint8_t> result_of(const Work& work, int changed_a, int changed_b) {
  const Handle handle;
  const Buffer a(kBytes, 1), b(kBytes, 2), c(kBytes, 3);
  const uint32_t other = 0x12345678;
  if (changed_a >= 0) a.write(static_cast<size_t>(changed_a) * 4, &other, 4);
  if (changed_b >= 0) b.write(static_cast<size_t>(changed_b) * 4, &other, 4);
  EXPECT_EQ(work(handle, a.at<float>(), b.at<float>(), c.at<float>()), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return c.read();
}

std::set<size_t> elements(const std::vector<size_t>& bytes) {
  std::set<size_t> all;
  for (const size_t byte : bytes) all.insert(byte / 4);
  return all;
}

// Elements of C that change with this one of A, and with this one of B.
std::pair<std::set<size_t>, std::set<size_t>> depends(const Work& work, int a, int b) {
  const auto before = result_of(work, -1, -1);
  return {elements(differences(before, result_of(work, a, -1))), elements(differences(before, result_of(work, -1, b)))};
}

std::set<size_t> written(const Work& work) {
  const Buffer fresh(kBytes, 3);
  return elements(differences(fresh.read(), result_of(work, -1, -1)));
}

constexpr float kAlpha = 2;
constexpr float kBeta = 3;
constexpr float kZero = 0;

// 3 rows and 2 columns; A has 8 elements between lines, B 7, C 5.
Work geam(cublasOperation_t op_a, cublasOperation_t op_b, const float* alpha = &kAlpha, const float* beta = &kBeta) {
  return [=](cublasHandle_t handle, const float* a, const float* b, float* c) {
    return cublasSgeam(handle, op_a, op_b, 3, 2, alpha, a, 8, beta, b, 7, c, 5);
  };
}

using Elements = std::set<size_t>;

TEST(Geam, AnElementDependsOnItsOwnOfEachMatrix) {
  constexpr auto kN = CUBLAS_OP_N;
  constexpr auto kT = CUBLAS_OP_T;
  // Row 2 of column 1 is C's element 7; not transposed A's 10 and B's 9, transposed A's 17 and B's 15.
  EXPECT_EQ(depends(geam(kN, kN), 10, 9), std::pair(Elements{7}, Elements{7}));
  EXPECT_EQ(depends(geam(kT, kN), 17, 9), std::pair(Elements{7}, Elements{7}));
  EXPECT_EQ(depends(geam(kN, kT), 10, 15), std::pair(Elements{7}, Elements{7}));
  EXPECT_EQ(depends(geam(kT, kT), 17, 15), std::pair(Elements{7}, Elements{7}));
  for (const auto op : {kN, kT}) EXPECT_EQ(written(geam(op, op)), (Elements{0, 1, 2, 5, 6, 7}));
}

TEST(Geam, DoesNotReadWhatZeroMultiplies) {
  const auto no_a = [](cublasHandle_t handle, const float*, const float* b, float* c) {
    return cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, &kZero, nullptr, 8, &kBeta, b, 7, c, 5);
  };
  EXPECT_EQ(depends(no_a, 10, 9), std::pair(Elements{}, Elements{7}));
  EXPECT_EQ(depends(geam(CUBLAS_OP_T, CUBLAS_OP_N, &kAlpha, &kZero), 17, 9), std::pair(Elements{7}, Elements{}));
}

TEST(Geam, DependsOnItsScalars) {
  const auto with = [](const float* alpha, const float* beta) {
    return result_of(geam(CUBLAS_OP_N, CUBLAS_OP_N, alpha, beta), -1, -1);
  };
  EXPECT_NE(with(&kAlpha, &kBeta), with(&kBeta, &kBeta));
  EXPECT_NE(with(&kAlpha, &kBeta), with(&kAlpha, &kAlpha));
}

TEST(Geam, ChecksItsArguments) {
  const Handle handle;
  const Buffer memory(kBytes);
  const auto with = [&](int m, int lda, int ldc) {
    return cublasSgeam(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, 2, &kAlpha, memory.at<float>(), lda, &kBeta,
                       memory.at<float>(), 8, memory.at<float>(32), ldc);
  };
  EXPECT_EQ(with(3, 3, 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(with(-1, 3, 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(with(3, 2, 3), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(with(3, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
}

// C is Y: its old content counts.
Work axpy(int x_step, int y_step) {
  return [=](cublasHandle_t handle, const float* x, const float* y, float* c) {
    EXPECT_EQ(cublasScopy_v2(handle, kElements, y, 1, c, 1), CUBLAS_STATUS_SUCCESS);
    return cublasSaxpy_v2(handle, 4, &kAlpha, x, x_step, c, y_step);
  };
}

TEST(Vectors, ASumDependsOnBoth) {
  EXPECT_EQ(depends(axpy(1, 1), 2, 3), std::pair(Elements{2}, Elements{3}));
  EXPECT_EQ(depends(axpy(3, 1), 6, 3), std::pair(Elements{2}, Elements{3}));
  EXPECT_EQ(depends(axpy(1, 5), 2, 15), std::pair(Elements{10}, Elements{15}));
  EXPECT_EQ(depends(axpy(-2, 3), 6, 0), std::pair(Elements{0}, Elements{0})) << "from the end on";
}

TEST(Vectors, ScalingAndCopying) {
  const auto scaled = [](cublasHandle_t handle, const float*, const float* y, float* c) {
    EXPECT_EQ(cublasScopy_v2(handle, kElements, y, 1, c, 1), CUBLAS_STATUS_SUCCESS);
    return cublasSscal_v2(handle, 3, &kAlpha, c, 4);
  };
  EXPECT_EQ(depends(scaled, 0, 8), std::pair(Elements{}, Elements{8}));
  const Handle handle;
  const Buffer from(kBytes, 1), to(kBytes, 2);
  ASSERT_EQ(cublasScopy_v2(handle, 3, from.at<float>(), 2, to.at<float>(), 5), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const auto source = from.read();
  const auto copied = to.read();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(std::memcmp(&source[i * 8], &copied[i * 20], 4), 0) << i;
}

}  // namespace
}  // namespace reprise::sim::blas

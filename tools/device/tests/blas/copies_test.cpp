// Vectors and matrices between host and device, and what the libraries say of themselves.
#include <cublasLt.h>

#include "tests/support/test.h"
#include "tools/device/tests/blas/products.h"

namespace reprise::sim::blas {
namespace {

constexpr int kInt = sizeof(int);

std::vector<int> numbers(size_t count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 1);
  return all;
}

std::vector<int> content(const Buffer& buffer, size_t count) {
  std::vector<int> all(count);
  const auto bytes = buffer.read();
  std::memcpy(all.data(), bytes.data(), count * sizeof(int));
  return all;
}

TEST(Copies, VectorsWithSteps) {
  const auto from = numbers(12);
  const Buffer device(12 * kInt);
  const auto before = content(device, 12);
  ASSERT_EQ(cublasSetVector(4, kInt, from.data(), 3, device.at<>(), 2), CUBLAS_STATUS_SUCCESS);
  const auto there = content(device, 12);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(there[i], i % 2 == 0 && i < 8 ? from[i / 2 * 3] : before[i]) << i;
  std::vector<int> back(4, 0);
  ASSERT_EQ(cublasGetVector_64(4, kInt, device.at<>(), 2, back.data(), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, (std::vector<int>{1, 4, 7, 10}));
}

TEST(Copies, MatricesWithLeadingDimensions) {
  const auto from = numbers(12);  // 3 rows and 3 columns of 4
  const Buffer device(15 * kInt);
  ASSERT_EQ(cublasSetMatrixAsync(3, 3, kInt, from.data(), 4, device.at<>(), 5, nullptr), CUBLAS_STATUS_SUCCESS);
  std::vector<int> back(9, 0);
  ASSERT_EQ(cublasGetMatrix(3, 3, kInt, device.at<>(), 5, back.data(), 3), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(back, (std::vector<int>{1, 2, 3, 5, 6, 7, 9, 10, 11}));
}

TEST(Copies, RefuseWhatCublasRefuses) {
  int host = 0;
  const Buffer device(kInt);
  EXPECT_EQ(cublasSetVector(0, kInt, &host, 1, device.at<>(), 1), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetVector(1, 0, &host, 1, device.at<>(), 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetVector(1, kInt, &host, 0, device.at<>(), 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGetMatrix(-1, 1, kInt, device.at<>(), 1, &host, 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGetMatrix(1, 1, kInt, device.at<>(), 0, &host, 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGetVector(1, kInt, nullptr, 1, &host, 1), CUBLAS_STATUS_MAPPING_ERROR);
}

TEST(Library, SaysWhatItIs) {
  const Handle handle;
  int version = 0, major = 0;
  ASSERT_EQ(cublasGetVersion_v2(handle, &version), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasGetProperty(MAJOR_VERSION, &major), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(version, CUBLAS_VERSION);
  EXPECT_EQ(major, CUBLAS_VER_MAJOR);
  EXPECT_EQ(std::string(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED)), "CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_NE(std::string(cublasLtGetStatusString(CUBLAS_STATUS_SUCCESS)), "");
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cublasSetStream_v2(handle, cudaStreamPerThread), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasGetStream_v2(handle, &stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stream, cudaStreamPerThread);
}

TEST(Library, HasHandlesOfCublasLtAlone) {
  cublasLtHandle_t handle = nullptr;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasLtCreate(nullptr), CUBLAS_STATUS_INVALID_VALUE);
}

// The same product as by the function for all types; each matrix of a batch has operands of its own.
TEST(StridedBatch, OfFloats) {
  const Handle handle;
  const float one = 1, zero = 0;
  const Buffer a(64 * 4, 1), b(64 * 4, 2), other(32 * 4, 3), batch(32 * 4, 3);
  ASSERT_EQ(cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.at<float>(), CUDA_R_32F, 4,
                                       16, b.at<float>(), CUDA_R_32F, 4, 16, &zero, other.at<float>(), CUDA_R_32F, 4,
                                       16, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a.at<float>(), 4, 16,
                                      b.at<float>(), 4, 16, &zero, batch.at<float>(), 4, 16, 2),
            CUBLAS_STATUS_SUCCESS);
  const auto both = batch.read();
  EXPECT_EQ(both, other.read());
  EXPECT_NE(std::vector<uint8_t>(both.begin(), both.begin() + 64), std::vector<uint8_t>(both.begin() + 64, both.end()));
  EXPECT_EQ(cublasHgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, reinterpret_cast<const __half*>(&one),
                                      a.at<__half>(), 4, 16, b.at<__half>(), 4, 16,
                                      reinterpret_cast<const __half*>(&zero), batch.at<__half>(), 4, 16, 2),
            CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace reprise::sim::blas

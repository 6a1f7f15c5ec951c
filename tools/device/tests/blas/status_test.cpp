// What cuBLAS documents for handles and bad arguments.
#include "tests/support/test.h"
#include "tools/device/tests/blas/products.h"

namespace reprise::sim::blas {
namespace {

TEST(Status, WithoutAHandleNothingIsInitialised) {
  EXPECT_EQ(cublasCreate_v2(nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasDestroy_v2(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  EXPECT_EQ(cublasSetStream_v2(nullptr, nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  const float one = 1;
  EXPECT_EQ(cublasSgemm_v2(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, nullptr, 1, nullptr, 1, &one, nullptr, 1),
            CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST(Status, ModesAreKept) {
  const Handle handle;
  cublasMath_t math = CUBLAS_PEDANTIC_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_DEVICE;
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, CUBLAS_DEFAULT_MATH);
  EXPECT_EQ(cublasGetPointerMode_v2(handle, &pointers), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(pointers, CUBLAS_POINTER_MODE_HOST);
  const auto both =
      static_cast<cublasMath_t>(CUBLAS_TF32_TENSOR_OP_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
  EXPECT_EQ(cublasSetMathMode(handle, both), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasGetMathMode(handle, &math), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(math, both);
  EXPECT_EQ(cublasSetMathMode(handle, static_cast<cublasMath_t>(64)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetPointerMode_v2(handle, static_cast<cublasPointerMode_t>(2)), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetSmCountTarget(handle, -1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetSmCountTarget(handle, 100000), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetSmCountTarget(handle, 1), CUBLAS_STATUS_SUCCESS);
}

TEST(Status, AWorkspaceIsAligned) {
  const Handle handle;
  const Buffer memory(1024);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, memory.at<>(), 512), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasSetWorkspace_v2(handle, memory.at<>(16), 512), CUBLAS_STATUS_INVALID_VALUE);
}

struct Shape {
  int m, n, k, lda, ldb, ldc;
  cublasStatus_t status;
};

TEST(Status, SizesAreChecked) {
  const Handle handle;
  const Buffer memory(4096);
  const float one = 1;
  constexpr auto kBad = CUBLAS_STATUS_INVALID_VALUE;
  for (const Shape& s :
       {Shape{4, 4, 4, 4, 4, 4, CUBLAS_STATUS_SUCCESS}, Shape{-1, 4, 4, 4, 4, 4, kBad}, Shape{4, -1, 4, 4, 4, 4, kBad},
        Shape{4, 4, -1, 4, 4, 4, kBad}, Shape{4, 4, 4, 3, 4, 4, kBad}, Shape{4, 4, 4, 4, 3, 4, kBad},
        Shape{4, 4, 4, 4, 4, 3, kBad}, Shape{0, 4, 4, 0, 4, 4, kBad}, Shape{0, 4, 4, 1, 4, 1, CUBLAS_STATUS_SUCCESS}}) {
    EXPECT_EQ(cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, s.m, s.n, s.k, &one, memory.at<float>(), s.lda,
                             memory.at<float>(256), s.ldb, &one, memory.at<float>(512), s.ldc),
              s.status)
        << s.m << " " << s.n << " " << s.k << " " << s.lda << " " << s.ldb << " " << s.ldc;
  }
}

TEST(Status, OtherArgumentsAreChecked) {
  const Handle handle;
  const Buffer memory(4096);
  const float one = 1;
  float* at = memory.at<float>();
  const auto gemm = [&](cublasOperation_t op, const float* alpha, const float* beta, float* c) {
    return cublasSgemm_v2(handle, op, CUBLAS_OP_N, 4, 4, 4, alpha, at, 4, at + 256, 4, beta, c, 4);
  };
  EXPECT_EQ(gemm(CUBLAS_OP_N, &one, &one, at + 512), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(gemm(static_cast<cublasOperation_t>(9), &one, &one, at + 512), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, nullptr, &one, at + 512), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, &one, nullptr, at + 512), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(gemm(CUBLAS_OP_N, &one, &one, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSgemv_v2(handle, CUBLAS_OP_N, 4, 4, &one, at, 4, at + 256, 0, &one, at + 512, 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, at, CUDA_R_8F_E4M3, 4, at + 256,
                         CUDA_R_8F_E4M3, 4, &one, at + 512, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

// The kernel does nothing on a device that runs kernels: as many results as products would be wrong.
TEST(Status, ADeviceThatIsNotOursIsRefused) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto create = [] {
    setenv("REPRISE_SIM_FAIL", "cuDeviceGetName=999", 1);
    cublasHandle_t handle = nullptr;
    std::exit(cublasCreate_v2(&handle) == CUBLAS_STATUS_NOT_INITIALIZED ? 0 : 1);
  };
  EXPECT_EXIT(create(), testing::ExitedWithCode(0), "this is a real device: start the program without");
}

TEST(Status, LinearAlgebraIsNotSupported) {
  const Handle handle;
  const Buffer memory(4096);
  const float one = 1;
  EXPECT_EQ(cublasStrsm_v2(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 4, 4, &one,
                           memory.at<float>(), 4, memory.at<float>(256), 4),
            CUBLAS_STATUS_NOT_SUPPORTED);
}

}  // namespace
}  // namespace reprise::sim::blas

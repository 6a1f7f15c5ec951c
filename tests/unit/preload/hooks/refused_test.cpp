// Copies, memsets and orders that the driver refuses: the answer is the call's, though memory is managed and the work
// put off.
#include <cuda.h>

#include "preload/access/pointees.h"
#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

namespace reprise {
namespace {

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    scripted().reset();
    watch(kWatching | kManaging);
    EXPECT_EQ(cuMemAlloc(&tensor_, kBytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemAlloc(&other_, 4 * kBytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    cuMemFree(other_);
    cuMemFree(tensor_);
    stop_watching();
  }

  static constexpr size_t kBytes = 1000;
  CUdeviceptr tensor_ = 0;
  CUdeviceptr other_ = 0;
};

TEST_F(Refused, WhatReachesPastTheEndOfATensorIsNotSubmitted) {
  std::vector<char> host(4 * kBytes);
  EXPECT_EQ(cuMemsetD8(tensor_, 1, kBytes + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD32Async(tensor_ + 8, 1, kBytes / 4 - 1, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD2D8(tensor_, 512, 1, 489, 2), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD(tensor_, other_, kBytes + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD(other_, tensor_ + 1, kBytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyHtoD(tensor_, host.data(), kBytes + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(host.data(), tensor_, kBytes + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(handler().commands.empty());
  EXPECT_EQ(cuMemsetD8(tensor_, 1, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD2D8(tensor_, 512, 1, 488, 2), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoD(tensor_ + 1, other_, kBytes - 1), CUDA_SUCCESS);
  ASSERT_EQ(handler().commands.size(), 3u);
  EXPECT_FALSE(handler().commands.back().command.first_of_shape);
}

// A kernel that is given the table touches what it names, still.
TEST_F(Refused, ATableKeepsItsAddressesWhereAMemsetIsRefused) {
  const uint64_t id = handler().allocations[0].allocation;
  CUdeviceptr table[2] = {other_, 0};
  EXPECT_EQ(cuMemcpyHtoD(tensor_, table, sizeof table), CUDA_SUCCESS);
  const uint64_t filled = pointees_version(id);
  EXPECT_EQ(cuMemsetD8(tensor_, 0, kBytes + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(pointees_version(id), filled);
  EXPECT_EQ(cuMemsetD8(tensor_, 0, kBytes), CUDA_SUCCESS);
  EXPECT_NE(pointees_version(id), filled);
}

TEST_F(Refused, WhatIsCapturedIsHeldToItsTensor) {
  const auto stream = reinterpret_cast<CUstream>(0x8000);
  EXPECT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(cuMemsetD8Async(tensor_, 1, kBytes + 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoDAsync(tensor_, other_, kBytes + 1, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemsetD8Async(tensor_, 1, kBytes, stream), CUDA_SUCCESS);
  EXPECT_EQ(scripted().call("cuMemsetD8Async").count, 1u);
  scripted().capturing(CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
}

TEST_F(Refused, MemoryThatWasFreedIsNone) {
  CUdeviceptr freed = 0;
  EXPECT_EQ(cuMemAlloc(&freed, kBytes), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(freed), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD8(freed, 1, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoD(tensor_, freed, 8), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(handler().commands.empty());
}

// It may be a mapping of the program's own, and it may be nothing: only the driver can tell.
TEST_F(Refused, WhereNobodyKnowsTheMemoryTheDriverAnswersBeforeTheCallReturns) {
  handler().made_by_us = false;
  cuMemsetD8(0x1234500, 1, 64);
  ASSERT_EQ(handler().commands.size(), 1u);
  EXPECT_TRUE(handler().commands.back().command.first_of_shape);
  cuMemsetD8(tensor_, 1, 64);
  EXPECT_FALSE(handler().commands.back().command.first_of_shape);
}

TEST_F(Refused, FlagsThatAreForCapturesGoToTheDriverAtOnce) {
  const auto event = reinterpret_cast<CUevent>(0x9000);
  scripted().answer("cuStreamWaitEvent", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 6), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(handler().ordered.back(), "cuStreamWaitEvent");
  scripted().answer("cuStreamWaitEvent", CUDA_SUCCESS);
  scripted().answer("cuEventRecordWithFlags", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventRecordWithFlags(event, nullptr, 6), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(handler().ordered.back(), "cuEventRecord");
  scripted().answer("cuEventRecordWithFlags", CUDA_SUCCESS);
}

}  // namespace
}  // namespace reprise

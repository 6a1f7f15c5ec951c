// The exported functions that are only forwarded: arguments arrive untouched, before and after the driver was looked
// up.
#include <cuda.h>

#include "preload/base/guard.h"
#include "preload/driver/driver.h"
#include "tests/support/test.h"
#include "tests/unit/preload/scripted/recording_handler.h"
#include "tests/unit/preload/scripted/scripted.h"

namespace reprise {
namespace {

class Thunks : public testing::Test {
 protected:
  void SetUp() override { scripted().reset(); }
  void TearDown() override { stop_watching(); }
};

TEST_F(Thunks, PassSixRegistersAndTheStack) {
  for (int call = 0; call < 2; ++call) {  // the first one resolves
    char name[] = "n";
    CUjit_option options[] = {CU_JIT_TARGET};
    void* values[] = {nullptr};
    ASSERT_EQ(cuLinkAddData(reinterpret_cast<CUlinkState>(0x11), CU_JIT_INPUT_PTX, reinterpret_cast<void*>(0x33), 0x44,
                            name, 1, options, values),
              CUDA_SUCCESS);
    const ScriptedCall seen = scripted().call("cuLinkAddData_v2");
    EXPECT_EQ(seen.count, static_cast<uint64_t>(call + 1));
    EXPECT_EQ(seen.integers[0], 0x11u);
    EXPECT_EQ(static_cast<uint32_t>(seen.integers[1]), static_cast<uint32_t>(CU_JIT_INPUT_PTX));
    EXPECT_EQ(seen.integers[2], 0x33u);
    EXPECT_EQ(seen.integers[3], 0x44u);
    EXPECT_EQ(seen.integers[4], reinterpret_cast<uint64_t>(name));
    EXPECT_EQ(static_cast<uint32_t>(seen.integers[5]), 1u);
    EXPECT_EQ(seen.integers[6], reinterpret_cast<uint64_t>(options));
    EXPECT_EQ(seen.integers[7], reinterpret_cast<uint64_t>(values));
  }
}

float as_float(double bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TEST_F(Thunks, KeepFloatingPointArgumentsWhileResolving) {
  // The driver's functions with floating-point arguments are all deprecated ones.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ASSERT_EQ(cuTexRefSetMipmapLevelBias(reinterpret_cast<CUtexref>(0x10), 2.5f), CUDA_SUCCESS);
#pragma GCC diagnostic pop
  EXPECT_EQ(as_float(scripted().call("cuTexRefSetMipmapLevelBias").real), 2.5f);
}

TEST_F(Thunks, AnswerHonestlyForWhatTheDriverLacks) {
  char luid[8];
  unsigned mask = 0;
  EXPECT_EQ(cuDeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuDeviceGetLuid(luid, &mask, 0), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Thunks, PassTheDriversResultOn) {
  scripted().answer("cuDeviceGetCount", CUDA_ERROR_NO_DEVICE);
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NO_DEVICE);
}

TEST_F(Thunks, OrderedCallsAskTheHandlerFirst) {
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), CUDA_SUCCESS);
  EXPECT_TRUE(handler().ordered.empty());  // nothing is watched
  watch(kWatching);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192), CUDA_SUCCESS);
  ASSERT_EQ(handler().ordered.size(), 1u);
  EXPECT_EQ(handler().ordered[0], "cuCtxSetLimit");
  const ScriptedCall seen = scripted().call("cuCtxSetLimit");
  EXPECT_EQ(seen.count, 2u);
  EXPECT_EQ(seen.integers[1], 8192u);
}

TEST_F(Thunks, OrderedCallsKeepStackArgumentsWhileAsking) {
  watch(kWatching);
  CUstreamBatchMemOpParams operations[1]{};
  EXPECT_EQ(cuStreamBatchMemOp(reinterpret_cast<CUstream>(0x77), 1, operations, 5), CUDA_SUCCESS);
  const ScriptedCall seen = scripted().call("cuStreamBatchMemOp_v2");
  EXPECT_EQ(seen.integers[0], 0x77u);
  EXPECT_EQ(seen.integers[2], reinterpret_cast<uint64_t>(operations));
  EXPECT_EQ(static_cast<uint32_t>(seen.integers[3]), 5u);
  EXPECT_EQ(handler().ordered.size(), 1u);
}

TEST_F(Thunks, AnErrorOfTheHandlerIsTheAnswerAndTheDriverGetsNothing) {
  watch(kWatching);
  CUstreamBatchMemOpParams operations[1]{};
  handler().ordered_answer = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(cuStreamBatchMemOp(reinterpret_cast<CUstream>(0x77), 1, operations, 5), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(scripted().call("cuStreamBatchMemOp_v2").count, 0u);
  ASSERT_EQ(handler().ordered_all_resident.size(), 1u);
  EXPECT_TRUE(handler().ordered_all_resident[0]);
  handler().ordered_answer = CUDA_SUCCESS;
  EXPECT_EQ(cuStreamBatchMemOp(reinterpret_cast<CUstream>(0x77), 1, operations, 5), CUDA_SUCCESS);
  EXPECT_EQ(scripted().call("cuStreamBatchMemOp_v2").count, 1u);
}

TEST_F(Thunks, EverythingIsResidentBeforeWhatNobodyUnderstandsAndNothingBeforeTheRest) {
  watch(kWatching);
  cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192);
  cuMemPrefetchAsync(0x1000, 4096, CUmemLocation{}, 0, nullptr);  // managed memory, which is never moved
  cuStreamWaitValue32(nullptr, 0x1000, 1, 0);
  EXPECT_EQ(handler().ordered_all_resident, (std::vector<bool>{false, false, true}));
}

TEST_F(Thunks, RefusedCallsAreForwardedUnlessManaging) {
  EXPECT_EQ(cuCheckpointProcessLock(1, nullptr), CUDA_SUCCESS);
  watch(kWatching);
  EXPECT_EQ(cuCheckpointProcessLock(1, nullptr), CUDA_SUCCESS);
  watch(kWatching | kManaging);
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuCheckpointProcessLock(1, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuCheckpointProcessLock(1, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(scripted().call("cuCheckpointProcessLock").count, 2u);
}

}  // namespace
}  // namespace reprise

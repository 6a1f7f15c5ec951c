// The link is measured for a recording, and nothing of that is left: on the simulated device and, where there is one,
// on a GPU.
#include "preload/measure/own_link.h"

#include <cuda.h>

#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/driver/sim_abi.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

class OwnLink : public ::testing::Test {
 protected:
  void SetUp() override {
    if (driver().cuInit(0) != CUDA_SUCCESS) std::exit(77);
    ASSERT_EQ(driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    // What the driver takes for its first copies and streams it keeps.
    measure_own_link();
  }
  void TearDown() override {
    if (context_ != nullptr) driver().cuDevicePrimaryCtxRelease(0);
  }
  static uint64_t free_bytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(driver().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }
  static bool simulated() { return driver_symbol("repriseSimGetStats") != nullptr; }

  CUcontext context_ = nullptr;
};

TEST_F(OwnLink, IsMeasuredAndNothingIsLeft) {
  const uint64_t before = free_bytes();
  const LinkRates rates = measure_own_link();
  EXPECT_EQ(free_bytes(), before);
  EXPECT_GT(rates.latency_ns, 0u);
  EXPECT_GT(rates.remap_ns_per_chunk, 0u);
  if (!simulated()) {
    EXPECT_GT(rates.h2d_bytes_per_s, 100'000'000u);
    EXPECT_GT(rates.d2h_bytes_per_s, 100'000'000u);
    return;
  }
  // A busy host makes the simulated link slower, never faster.
  EXPECT_LT(rates.h2d_bytes_per_s, 280u << 20);
  EXPECT_LT(rates.d2h_bytes_per_s, 140u << 20);
  EXPECT_GT(rates.h2d_bytes_per_s, 80u << 20);
  EXPECT_GT(rates.d2h_bytes_per_s, 40u << 20);
}

TEST_F(OwnLink, OfAFullDeviceIsNotMeasured) {
  if (!simulated()) GTEST_SKIP() << "other processes may be there";
  CUdeviceptr all = 0;
  ASSERT_EQ(driver().cuMemAlloc(&all, free_bytes()), CUDA_SUCCESS);
  EXPECT_EQ(measure_own_link().h2d_bytes_per_s, 0u);
  EXPECT_EQ(driver().cuMemFree(all), CUDA_SUCCESS);
}

// Fails the nth call of the driver's function for which it stands.
int calls_left = 0;
template <auto Member>
struct Failing;
template <typename... Arguments, CUresult (*DriverTable::*Member)(Arguments...)>
struct Failing<Member> {
  static inline CUresult (*real)(Arguments...) = nullptr;
  static CUresult call(Arguments... arguments) {
    return --calls_left == 0 ? CUDA_ERROR_OUT_OF_MEMORY : real(arguments...);
  }
};

template <auto Member>
void expect_nothing_left(uint64_t free, uint64_t (*free_now)()) {
  auto& table = const_cast<DriverTable&>(driver());
  Failing<Member>::real = table.*Member;
  for (const int nth : {1, 2, 3, 7}) {
    calls_left = nth;
    table.*Member = &Failing<Member>::call;
    measure_own_link();
    table.*Member = Failing<Member>::real;
    EXPECT_EQ(free_now(), free) << nth;
  }
}

TEST_F(OwnLink, LeavesNothingWhicheverCallIsRefused) {
  const uint64_t free = free_bytes();
  expect_nothing_left<&DriverTable::cuMemCreate>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemAddressReserve>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemMap>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemSetAccess>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemHostAlloc>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuStreamCreate>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuEventCreate>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuEventRecord>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuEventElapsedTime>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemcpyHtoDAsync>(free, &free_bytes);
  expect_nothing_left<&DriverTable::cuMemcpyDtoHAsync>(free, &free_bytes);
  EXPECT_GT(measure_own_link().h2d_bytes_per_s, 0u);
}

TEST_F(OwnLink, LeavesACaptureOfTheProgramAlone) {
  CUstream stream = nullptr;
  ASSERT_EQ(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(driver().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_GT(measure_own_link().h2d_bytes_per_s, 0u);
  CUgraph graph = nullptr;
  EXPECT_EQ(driver().cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  driver().cuStreamDestroy(stream);
}

}  // namespace
}  // namespace reprise

// What this process holds of a device, on the simulated device and, where there is one, on a GPU.
#include "preload/driver/own_memory.h"

#include <cuda.h>

#include "preload/driver/driver.h"
#include "preload/driver/resolve.h"
#include "preload/driver/taken.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class OwnMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (driver().cuInit(0) != CUDA_SUCCESS) std::exit(77);
    ASSERT_EQ(driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    // Nobody tells it without NVML, and in a container; the simulated device does.
    if (!own_bytes(0) && driver_symbol("repriseSimGetStats") == nullptr) std::exit(77);
  }
  void TearDown() override {
    if (context_ != nullptr) driver().cuDevicePrimaryCtxRelease(0);
  }
  CUcontext context_ = nullptr;
};

TEST_F(OwnMemory, FollowsWhatIsTakenAndGivenBack) {
  ASSERT_TRUE(own_bytes_follow(0));
  const uint64_t before = own_bytes(0).value();
  const BeforeCall look = look_before_call(0);
  CUdeviceptr address = 0;
  ASSERT_EQ(driver().cuMemAlloc(&address, 64 * kMiB), CUDA_SUCCESS);
  const TakenByCall taken = taken_by_call(look, 0);
  EXPECT_TRUE(taken.own);
  EXPECT_GE(taken.bytes, 64 * kMiB);
  EXPECT_LE(taken.bytes, 68 * kMiB);
  EXPECT_EQ(own_bytes(0).value(), before + taken.bytes);
  ASSERT_EQ(driver().cuMemFree(address), CUDA_SUCCESS);
  EXPECT_EQ(own_bytes(0).value(), before);
}

TEST_F(OwnMemory, OfNoDeviceNothingIsTold) {
  for (const CUdevice device : {-1, 63, 64, 1000}) {
    EXPECT_FALSE(own_bytes(device).has_value()) << device;
    EXPECT_FALSE(own_bytes_follow(device)) << device;
  }
}

}  // namespace
}  // namespace reprise

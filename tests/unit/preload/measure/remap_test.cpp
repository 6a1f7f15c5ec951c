// How long mapping takes, measured on the simulated device with its modelled clock, as CMakeLists.txt sets it for this
// process: 1 ms for a chunk of 2 MiB. A thread that is late by that clock catches up in the calls that map, which are
// shorter then by the host's.
#include <cuda.h>

#include "preload/driver/driver.h"
#include "preload/measure/link_timer.h"
#include "tests/support/test.h"

namespace reprise {
namespace {

constexpr size_t kChunk = 2u << 20;

class Remap : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(driver().cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = access_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ASSERT_EQ(driver().cuMemCreate(&chunk_, kChunk, &properties, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuMemAddressReserve(&address_, kChunk, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(map(), CUDA_SUCCESS);
  }
  void TearDown() override { driver().cuDevicePrimaryCtxRelease(0); }

  CUresult map() {
    const CUresult result = driver().cuMemMap(address_, kChunk, 0, chunk_, 0);
    return result == CUDA_SUCCESS ? driver().cuMemSetAccess(address_, kChunk, &access_, 1) : result;
  }
  uint64_t measured() {
    return remap_ns([this] {
      const CUresult result = driver().cuMemUnmap(address_, kChunk);
      return result == CUDA_SUCCESS ? map() : result;
    });
  }
  // The host needs some 50 ms for what takes 0.3 ms by the modelled clock, and the thread waits for it.
  void fall_behind() {
    constexpr size_t kBytes = 256u << 20;
    CUdeviceptr memory = 0;
    ASSERT_EQ(driver().cuMemAlloc(&memory, kBytes), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuMemsetD8Async(memory, 1, kBytes, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuMemFree(memory), CUDA_SUCCESS);
  }

  CUcontext context_ = nullptr;
  CUmemAccessDesc access_{};
  CUmemGenericAllocationHandle chunk_ = 0;
  CUdeviceptr address_ = 0;
};

TEST_F(Remap, TakesAsLongForAThreadThatHasToCatchUp) {
  EXPECT_NEAR(static_cast<double>(measured()), 1e6, 2e5);
  fall_behind();
  EXPECT_NEAR(static_cast<double>(measured()), 1e6, 2e5);
}

}  // namespace
}  // namespace reprise

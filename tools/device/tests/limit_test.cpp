// The kernel's limit of mappings per process: neighbours share one, and beyond it there is an error, not a crash.
#include "preload/driver/sim_abi.h"
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Limit : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    std::ifstream("/proc/sys/vm/max_map_count") >> limit_;
    if (limit_ == 0 || limit_ > 100'000) GTEST_SKIP() << "the limit is too high to be reached";
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    ASSERT_CU(CU(cuMemGetAllocationGranularity)(&unit_, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ASSERT_EQ(4096u, unit_);
    handles_.resize(limit_ + 1000);
    ASSERT_CU(CU(cuMemAddressReserve)(&base_, handles_.size() * unit_, 0, 0, 0));
    for (auto& handle : handles_) ASSERT_CU(CU(cuMemCreate)(&handle, unit_, &properties, 0));
  }
  void TearDown() override {
    for (const auto handle : handles_) CU(cuMemRelease)(handle);
    DriverTest::TearDown();
  }
  CUresult map(size_t place, size_t handle) {
    const CUdeviceptr at = base_ + place * unit_;
    const CUresult mapped = CU(cuMemMap)(at, unit_, 0, handles_[handle], 0);
    if (mapped != CUDA_SUCCESS) return mapped;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device_}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CU(cuMemSetAccess)(at, unit_, &access, 1);
  }
  size_t limit_ = 0;
  size_t unit_ = 0;
  CUdeviceptr base_ = 0;
  std::vector<CUmemGenericAllocationHandle> handles_;
};

// What Reprise keeps mapped for speed stays below it, with room for the program's own.
TEST_F(Limit, IsTold) {
  const auto told = reinterpret_cast<decltype(&repriseSimMostMappings)>(control_symbol("repriseSimMostMappings"));
  if (!simulated()) GTEST_SKIP() << "a GPU's driver knows no such limit";
  ASSERT_NE(told, nullptr);
  EXPECT_GT(told(), limit_ / 4);
  EXPECT_LT(told(), limit_ / 2);
}

TEST_F(Limit, NeighboursShareAMapping) {
  for (size_t i = 0; i < handles_.size(); ++i) ASSERT_CU(map(i, i)) << i;
  ASSERT_CU(CU(cuMemUnmap)(base_, handles_.size() * unit_));
}

TEST_F(Limit, BeyondItThereIsAnErrorAndAWayBack) {
  size_t mapped = 0;
  CUresult result = CUDA_SUCCESS;
  for (; mapped < handles_.size(); ++mapped) {
    result = map(handles_.size() - 1 - mapped, mapped);
    if (result != CUDA_SUCCESS) break;
  }
  EXPECT_EQ(CUDA_ERROR_OUT_OF_MEMORY, result);
  ASSERT_GT(mapped, limit_ / 2);
  for (size_t i = 0; i < mapped; ++i) {
    ASSERT_CU(CU(cuMemUnmap)(base_ + (handles_.size() - 1 - i) * unit_, unit_)) << i;
  }
  EXPECT_CU(map(5, 7));
  EXPECT_CU(CU(cuMemUnmap)(base_ + 5 * unit_, unit_));
}

}  // namespace
}  // namespace reprise::sim_test

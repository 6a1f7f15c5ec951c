// Virtual memory: physical chunks, reservations, mappings, access.
#include "tools/device/tests/driver.h"

namespace reprise::sim_test {
namespace {

class Vmm : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    ASSERT_CU(CU(cuMemGetAllocationGranularity)(&unit_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  CUmemGenericAllocationHandle create(size_t units = 1) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(CU(cuMemCreate)(&handle, units * unit_, &properties_, 0));
    return handle;
  }
  CUdeviceptr reserve(size_t units, CUdeviceptr hint = 0) {
    CUdeviceptr base = 0;
    EXPECT_CU(CU(cuMemAddressReserve)(&base, units * unit_, 0, hint, 0));
    return base;
  }
  CUresult access(CUdeviceptr base, size_t units, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    CUmemAccessDesc descriptor = {};
    descriptor.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
    descriptor.flags = flags;
    return CU(cuMemSetAccess)(base, units * unit_, &descriptor, 1);
  }
  CUresult store(CUdeviceptr to, int value) { return launch("store", {&to, &value}); }

  CUmemAllocationProp properties_ = {};
  size_t unit_ = 0;
};

TEST_F(Vmm, TwoMappingsOfAChunkAreTheSameBytes) {
  const auto chunk = create();
  const CUdeviceptr base = reserve(2);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, chunk, 0));
  ASSERT_CU(CU(cuMemMap)(base + unit_, unit_, 0, chunk, 0));
  ASSERT_CU(access(base, 2));
  ASSERT_CU(store(base + 64, 1234));
  EXPECT_EQ(1234, read_ints(base + unit_ + 64, 1)[0]);
  ASSERT_CU(CU(cuMemUnmap)(base, 2 * unit_));
  ASSERT_CU(CU(cuMemRelease)(chunk));
  ASSERT_CU(CU(cuMemAddressFree)(base, 2 * unit_));
}

TEST_F(Vmm, ContentsStayWhenAChunkIsMappedElsewhere) {
  const auto chunk = create();
  const CUdeviceptr base = reserve(2);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, chunk, 0));
  ASSERT_CU(access(base, 1));
  ASSERT_CU(store(base, 5));
  ASSERT_CU(CU(cuCtxSynchronize)());
  ASSERT_CU(CU(cuMemUnmap)(base, unit_));
  ASSERT_CU(CU(cuMemMap)(base + unit_, unit_, 0, chunk, 0));
  ASSERT_CU(access(base + unit_, 1));
  EXPECT_EQ(5, read_ints(base + unit_, 1)[0]);
}

TEST_F(Vmm, CopiesCrossChunks) {
  const CUdeviceptr base = reserve(3);
  for (unsigned i = 0; i < 3; ++i) ASSERT_CU(CU(cuMemMap)(base + i * unit_, unit_, 0, create(), 0));
  ASSERT_CU(access(base, 3));
  std::vector<int> values(3 * unit_ / 4);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 7);
  ASSERT_CU(CU(cuMemcpyHtoD)(base, values.data(), 3 * unit_));
  EXPECT_EQ(values, read_ints(base, values.size()));
}

TEST_F(Vmm, AnUnmappedAddressFaults) {
  IN_A_PROCESS_OF_ITS_OWN();
  const CUdeviceptr base = reserve(1);
  ASSERT_CU(store(base, 1));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
}

TEST_F(Vmm, AMappingWithoutAccessFaults) {
  IN_A_PROCESS_OF_ITS_OWN();
  const CUdeviceptr base = reserve(1);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, create(), 0));
  ASSERT_CU(store(base, 1));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
}

TEST_F(Vmm, ReadOnlyMemoryFaultsOnWrites) {
  IN_A_PROCESS_OF_ITS_OWN();
  const CUdeviceptr base = reserve(1);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, create(), 0));
  ASSERT_CU(access(base, 1, CU_MEM_ACCESS_FLAGS_PROT_READ));
  unsigned long long flags = 0;
  const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  ASSERT_CU(CU(cuMemGetAccess)(&flags, &location, base));
  EXPECT_EQ(CU_MEM_ACCESS_FLAGS_PROT_READ, flags);
  read_ints(base, 1);
  ASSERT_CU(store(base, 1));
  EXPECT_EQ(CUDA_ERROR_ILLEGAL_ADDRESS, CU(cuCtxSynchronize)());
}

TEST_F(Vmm, UnmapTakesWholeMappings) {
  const CUdeviceptr base = reserve(4);
  ASSERT_CU(CU(cuMemMap)(base, 2 * unit_, 0, create(2), 0));
  ASSERT_CU(CU(cuMemMap)(base + 2 * unit_, 2 * unit_, 0, create(2), 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(base, unit_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(base, 3 * unit_));
  EXPECT_CU(CU(cuMemUnmap)(base, 4 * unit_));
}

TEST_F(Vmm, MappingsDoNotOverlapAndStayInReservations) {
  const CUdeviceptr base = reserve(2);
  const auto chunk = create();
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, chunk, 0));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(base, unit_, 0, chunk, 0));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemMap)(base + unit_, unit_, unit_, chunk, 0));
  const CUdeviceptr gone = reserve(1);
  ASSERT_CU(CU(cuMemAddressFree)(gone, unit_));
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(gone, unit_, 0, chunk, 0));
  EXPECT_EQ(CUDA_ERROR_NOT_SUPPORTED, CU(cuMemMap)(base + unit_, unit_ / 2, 0, chunk, 0));
}

TEST_F(Vmm, MemoryCountsUntilHandleAndMappingsAreGone) {
  size_t before = 0, now = 0, total = 0;
  ASSERT_CU(CU(cuMemGetInfo)(&before, &total));
  const auto chunk = create(4);
  ASSERT_CU(CU(cuMemGetInfo)(&now, &total));
  EXPECT_EQ(4 * unit_, before - now);
  const CUdeviceptr base = reserve(4);
  ASSERT_CU(CU(cuMemMap)(base, 4 * unit_, 0, chunk, 0));
  ASSERT_CU(CU(cuMemRelease)(chunk));
  ASSERT_CU(CU(cuMemGetInfo)(&now, &total));
  EXPECT_EQ(4 * unit_, before - now);
  ASSERT_CU(CU(cuMemUnmap)(base, 4 * unit_));
  ASSERT_CU(CU(cuMemGetInfo)(&now, &total));
  EXPECT_EQ(before, now);
}

TEST_F(Vmm, RetainedHandlesCount) {
  const auto chunk = create();
  const CUdeviceptr base = reserve(1);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, chunk, 0));
  CUmemGenericAllocationHandle again = 0;
  ASSERT_CU(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(base)));
  EXPECT_CU(CU(cuMemRelease)(chunk));
  EXPECT_CU(CU(cuMemRelease)(again));
}

TEST_F(Vmm, ReservationsTakeAHintThatIsFree) {
#ifdef __SANITIZE_THREAD__
  if (simulated()) GTEST_SKIP() << "ThreadSanitizer leaves it other addresses (tools/device/memory/arena.h)";
#endif
  const CUdeviceptr hint = 0x4000'0000'0000;
  const CUdeviceptr first = reserve(8, hint);
  EXPECT_EQ(hint, first);
  const CUdeviceptr second = reserve(8, hint);
  EXPECT_NE(hint, second);
  EXPECT_EQ(0u, second % unit_);
  EXPECT_EQ(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(first, unit_));
  EXPECT_CU(CU(cuMemAddressFree)(first, 8 * unit_));
}

TEST_F(Vmm, HostMemoryIsReachableFromBothSides) {
  CUmemAllocationProp host = {};
  host.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  host.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  CUmemGenericAllocationHandle chunk = 0;
  ASSERT_CU(CU(cuMemCreate)(&chunk, unit_, &host, 0));
  const CUdeviceptr base = reserve(1);
  ASSERT_CU(CU(cuMemMap)(base, unit_, 0, chunk, 0));
  CUmemAccessDesc both[2] = {};
  both[0] = {{CU_MEM_LOCATION_TYPE_DEVICE, device_}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  both[1] = {{CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_CU(CU(cuMemSetAccess)(base, unit_, both, 2));
  ASSERT_CU(store(base, 21));
  ASSERT_CU(CU(cuCtxSynchronize)());
  EXPECT_EQ(21, *reinterpret_cast<int*>(base));
}

TEST_F(Vmm, ManyMappingsInRandomOrder) {
  constexpr unsigned kCount = 256;
  const CUdeviceptr base = reserve(kCount);
  std::vector<CUmemGenericAllocationHandle> handles;
  for (unsigned i = 0; i < kCount; ++i) handles.push_back(create());
  for (unsigned i = 0; i < kCount; ++i) {
    ASSERT_CU(CU(cuMemMap)(base + ((i * 37) % kCount) * unit_, unit_, 0, handles[i], 0));
  }
  ASSERT_CU(access(base, kCount));
  for (unsigned i = 0; i < kCount; ++i) ASSERT_CU(store(base + ((i * 37) % kCount) * unit_, static_cast<int>(i)));
  for (unsigned i = 0; i < kCount; ++i)
    EXPECT_EQ(static_cast<int>(i), read_ints(base + ((i * 37) % kCount) * unit_, 1)[0]);
  ASSERT_CU(CU(cuMemUnmap)(base, kCount * unit_));
  for (const auto handle : handles) ASSERT_CU(CU(cuMemRelease)(handle));
}

}  // namespace
}  // namespace reprise::sim_test

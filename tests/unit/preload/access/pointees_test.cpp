// Tables of addresses that copies bring: of any size, however the bytes come, and what becomes of them.
#include "preload/access/pointees.h"

#include "preload/tracking/allocations.h"
#include "tests/unit/preload/access/launching.h"

namespace reprise {
namespace {

class Pointees : public Launching {};

TEST_F(Pointees, ATableOfAnySizeIsKnown) {
  const CUdeviceptr pointee = allocate(4096);
  for (const size_t words :
       {size_t{1}, size_t{8}, size_t{77}, size_t{1} << 17, (size_t{1} << 17) + 1, size_t{3} << 18}) {
    const CUdeviceptr table = allocate(words * 8);
    std::vector<CUdeviceptr> payload(words, 5);
    payload[words - 1] = pointee + 8;
    cuMemcpyHtoD(table, payload.data(), words * 8);
    launch(table);
    EXPECT_TRUE(touches(pointee)) << words;
    release(table);
  }
}

TEST_F(Pointees, ALargeCopyEndsWhatStoodThere) {
  const CUdeviceptr pointee = allocate(4096), table = allocate(4 << 20);
  std::vector<CUdeviceptr> payload(size_t{4} << 17, pointee);
  cuMemcpyHtoD(table, payload.data(), 800);
  std::fill(payload.begin(), payload.end(), 0);
  cuMemcpyHtoD(table, payload.data(), payload.size() * 8);
  launch(table);
  EXPECT_FALSE(touches(pointee));
}

TEST_F(Pointees, MoreAddressesThanAreKeptMakeUsersOpaque) {
  const CUdeviceptr pointee = allocate(1 << 20), table = allocate(2 << 20);
  const std::vector<CUdeviceptr> payload(size_t{2} << 17, pointee);
  cuMemcpyHtoD(table, payload.data(), payload.size() * 8);
  launch(table);
  EXPECT_TRUE(opaque());
  cuMemcpyHtoD(table, std::vector<CUdeviceptr>(size_t{2} << 17).data(), payload.size() * 8);
  launch(table);
  EXPECT_FALSE(opaque());
}

TEST_F(Pointees, ACopyWithinOneAllocationTakesThemAlong) {
  const CUdeviceptr pointee = allocate(4096), table = allocate(4096);
  const CUdeviceptr word[] = {pointee};
  cuMemcpyHtoD(table, word, 8);
  cuMemcpyDtoD(table + 1024, table, 64);
  const CUdeviceptr nothing[] = {0};
  cuMemcpyHtoD(table, nothing, 8);
  launch(table);
  EXPECT_TRUE(touches(pointee));
}

TEST_F(Pointees, RowsOfDifferentPitchTakeThemAlong) {
  const CUdeviceptr pointee = allocate(4096), table = allocate(4096), wide = allocate(1 << 16);
  const CUdeviceptr words[] = {0, 0, 0, pointee};
  cuMemcpyHtoD(table, words, sizeof words);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = table;
  copy.srcPitch = 16;
  copy.dstDevice = wide;
  copy.dstPitch = 512;
  copy.WidthInBytes = 16;
  copy.Height = 2;
  cuMemcpy2D(&copy);
  const CUdeviceptr nothing[] = {0};
  cuMemcpyHtoD(wide + 24, nothing, 8);  // where it would stand without gaps
  launch(wide);
  EXPECT_TRUE(touches(pointee));
  cuMemcpyHtoD(wide + 520, nothing, 8);
  launch(wide);
  EXPECT_FALSE(touches(pointee));
}

TEST_F(Pointees, AnAddressMayBeAllocatedAfterTheTable) {
  CUdeviceptr pointee = allocate(4096);
  const CUdeviceptr table = allocate(4096), above = allocate(4096);
  release(pointee);
  const CUdeviceptr word[] = {pointee};
  cuMemcpyHtoD(table, word, 8);
  launch(table);
  EXPECT_FALSE(touches(pointee));
  Allocation again;  // as an allocator gives the same address again
  again.id = next_allocation_id();
  again.address = pointee;
  again.size = 4096;
  ASSERT_TRUE(insert_allocation(again));
  launch(table);
  EXPECT_TRUE(touches(pointee));
  forget_allocation(pointee, nullptr);
  (void)above;
}

TEST_F(Pointees, AWordThatAStreamWritesMayBeAnAddress) {
  const CUdeviceptr pointee = allocate(4096), table = allocate(4096);
  cuStreamWriteValue64(reinterpret_cast<CUstream>(0x7000), table + 16, pointee, 0);
  launch(table);
  EXPECT_TRUE(touches(pointee));
}

TEST_F(Pointees, WhatADeviceCopyBringsToPinnedMemoryComesBack) {
  static uint64_t pinned[512];
  ASSERT_EQ(cuMemHostRegister(pinned, sizeof pinned, 0), CUDA_SUCCESS);
  const CUdeviceptr pointee = allocate(4096), table = allocate(4096);
  const CUdeviceptr word[] = {pointee};
  cuMemcpyHtoD(table, word, 8);
  cuMemcpyDtoHAsync(pinned, table, 4096, nullptr);  // the scripted driver copies nothing
  launch(reinterpret_cast<CUdeviceptr>(pinned));
  EXPECT_TRUE(touches(pointee));
  cuMemHostUnregister(pinned);
}

}  // namespace
}  // namespace reprise

// Where a tensor's bytes are: copies to its host slot and back on a fake driver with real bytes, their order, and what
// a refused copy changes.
#include "replay/memory/memory.h"

#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;
constexpr uint64_t kSlot = HostTier::kSlotUnit;

// Chunks as large as a piece of host memory, so that a tensor of several chunks may have several pieces.
class CopiesTest : public ::testing::Test {
 protected:
  CopiesTest() : lane_(device_.new_lane()) {
    // Pieces of one slot each are all that is free: 0, 2, 4, ... of the first slab.
    std::vector<HostSlot> slots(20);
    for (HostSlot& slot : slots) memory_.host.allocate(kSlot, &slot);
    for (size_t i = 0; i < slots.size(); i += 2) memory_.host.release(&slots[i]);
    device_.driver.clear();
  }
  ~CopiesTest() override {
    device_.driver.run_all();
    EXPECT_EQ(device_.driver.violations, Calls{});
  }

  ResidentTensor& tensor(uint64_t chunks, uint64_t bytes) {
    ResidentTensor& made = *memory_.tensors.insert(next_, bytes, static_cast<uint32_t>(chunks));
    made.settle_in();
    made.wrote();
    EXPECT_EQ(memory_.mappings.map(next_, device_.take(chunks)), CUDA_SUCCESS);
    next_ += (chunks + 1) * kSlot;
    return made;
  }
  // Queues work that gives every 4 KiB of the tensor a number of its own, or checks that it has it.
  LaneUse fill(const ResidentTensor& tensor, uint64_t seed) {
    return device_.work(lane_, [this, base = tensor.base, size = tensor.size, seed] {
      for (uint64_t at = 0; at + 8 <= size; at += 4096) device_.driver.write(base + at, seed + at);
      device_.driver.write(base + size - 8, ~seed);
    });
  }
  bool holds(const ResidentTensor& tensor, uint64_t seed) {
    for (uint64_t at = 0; at + 8 <= tensor.size - 8; at += 4096) {
      if (device_.driver.read(tensor.base + at) != seed + at) return false;
    }
    return device_.driver.read(tensor.base + tensor.size - 8) == ~seed;
  }

  testing::SmallDevice device_{16, kSlot, 20 * kSlot};
  ManagedMemory& memory_ = device_.memory;
  CUdeviceptr next_ = memory_.arena.ranges.base;
  LaneIndex lane_;
};

TEST_F(CopiesTest, BytesComeBackOverAnyNumberOfPieces) {
  for (const uint64_t bytes : {kSlot - 512, kSlot, 3 * kSlot - 8 * 1024, 4 * kSlot}) {
    ResidentTensor& copied = tensor((bytes + kSlot - 1) / kSlot, bytes);
    const LaneUse filled = fill(copied, bytes);
    ASSERT_TRUE(ensure_slot(memory_, copied));
    EXPECT_EQ(copied.host.size(), (bytes + kSlot - 1) / kSlot);
    EXPECT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
    EXPECT_TRUE(copied.host_valid());
    ASSERT_EQ(memory_.lanes.wait_on(lane_, copied.host_ready()), CUDA_SUCCESS);
    const LaneUse overwritten = fill(copied, 2);
    LaneUse done;
    EXPECT_EQ(copy_in(memory_, copied, {}, testing::SmallDevice::uses_of(overwritten), &done), CUDA_SUCCESS);
    EXPECT_EQ(memory_.lanes.host_wait(testing::SmallDevice::uses_of(done)), CUDA_SUCCESS);
    EXPECT_TRUE(holds(copied, bytes)) << bytes;
    drop_host_copy(memory_, copied);
  }
}

TEST_F(CopiesTest, ACopyOutWaitsForItsUsesOnTheDevice) {
  ResidentTensor& copied = tensor(2, 2 * kSlot);
  const LaneUse filled = fill(copied, 77);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  ASSERT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.count("cuEventSynchronize") + device_.driver.count("cuCtxSynchronize"), 0u);
  while (device_.driver.step(memory_.lanes.stream(Lanes::kToHost))) {
  }
  EXPECT_FALSE(memory_.lanes.complete(testing::SmallDevice::uses_of(copied.host_ready())))
      << "the program's work is first";
  device_.driver.run_all();
  fill(copied, 5);
  device_.driver.run_all();
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_SUCCESS);
  device_.driver.run_all();
  EXPECT_TRUE(holds(copied, 77));
  EXPECT_EQ(memory_.traffic.offloaded_bytes, 2 * kSlot);
  EXPECT_EQ(memory_.traffic.reloaded_bytes, 2 * kSlot);
}

TEST_F(CopiesTest, ACopyInWaitsForTheCopyOut) {
  ResidentTensor& copied = tensor(1, kSlot);
  const LaneUse filled = fill(copied, 3);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  ASSERT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_SUCCESS);
  while (device_.driver.step(memory_.lanes.stream(Lanes::kToDevice))) {
  }
  EXPECT_FALSE(memory_.lanes.complete(testing::SmallDevice::uses_of(done)));
  EXPECT_EQ(memory_.lanes.host_wait(testing::SmallDevice::uses_of(done)), CUDA_SUCCESS);
  EXPECT_TRUE(holds(copied, 3));
}

TEST_F(CopiesTest, GoToTheOwnContextWhicheverIsCurrent) {
  ResidentTensor& copied = tensor(1, kSlot);
  const LaneUse filled = fill(copied, 41);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  const CUcontext elsewhere = reinterpret_cast<CUcontext>(uint64_t{0xd0});
  memory_.lanes.enter(elsewhere);
  ASSERT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  memory_.lanes.enter(elsewhere);
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_SUCCESS);
  device_.driver.run_all();
  EXPECT_TRUE(holds(copied, 41));
}

TEST_F(CopiesTest, ARefusedCopyOutLeavesTheTensorWhereItIs) {
  ResidentTensor& copied = tensor(3, 3 * kSlot);
  const LaneUse filled = fill(copied, 9);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  const std::vector<std::pair<std::string, int>> faults = {
      {"cuEventRecord", 1}, {"cuStreamWaitEvent", 1}, {"cuMemcpyDtoHAsync", 1}, {"cuMemcpyDtoHAsync", 3}};
  for (const auto& [function, nth] : faults) {
    device_.driver.fail(function, nth, CUDA_ERROR_UNKNOWN);
    EXPECT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_ERROR_UNKNOWN) << function;
    EXPECT_FALSE(copied.host_valid()) << function << nth;
    EXPECT_TRUE(copied.is_resident());
  }
  EXPECT_EQ(memory_.traffic.offloaded_bytes, 0u);
  EXPECT_EQ(memory_.traffic.failed_copies, 4u);
  EXPECT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS) << "and again";
  EXPECT_TRUE(copied.host_valid());
}

TEST_F(CopiesTest, ARefusedCopyInKeepsTheHostCopy) {
  ResidentTensor& copied = tensor(2, 2 * kSlot);
  const LaneUse filled = fill(copied, 11);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  ASSERT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  LaneUse done;
  device_.driver.fail("cuMemcpyHtoDAsync", 2, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_ERROR_UNKNOWN);
  EXPECT_TRUE(copied.host_valid());
  EXPECT_EQ(memory_.traffic.reloaded_bytes, 0u);
  EXPECT_EQ(done.position, memory_.lanes[Lanes::kToDevice].issued) << "the first piece is on its way all the same";
  ASSERT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_SUCCESS);
  device_.driver.run_all();
  EXPECT_TRUE(holds(copied, 11));
}

// The slot is given back while a reload still reads it; the offload of its next owner must come after that reload.
TEST_F(CopiesTest, ASlotIsWrittenAgainAfterItsLastRead) {
  ResidentTensor& old = tensor(1, kSlot);
  const LaneUse filled = fill(old, 21);
  ASSERT_TRUE(ensure_slot(memory_, old));
  const uint64_t place = old.host[0].address;
  ASSERT_EQ(copy_out(memory_, old, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  device_.driver.run_all();
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, old, {}, {}, &done), CUDA_SUCCESS);
  drop_host_copy(memory_, old);
  EXPECT_TRUE(old.host.empty());
  EXPECT_FALSE(old.host_valid());
  ResidentTensor& next = tensor(1, kSlot);
  const LaneUse written = fill(next, 22);
  ASSERT_TRUE(ensure_slot(memory_, next));
  ASSERT_EQ(next.host[0].address, place) << "the test tests nothing";
  ASSERT_EQ(copy_out(memory_, next, {}, testing::SmallDevice::uses_of(written)), CUDA_SUCCESS);
  EXPECT_EQ(memory_.lanes.host_wait(testing::SmallDevice::uses_of(next.host_ready())), CUDA_SUCCESS);
  device_.driver.run_all();
  EXPECT_TRUE(holds(old, 21));
}

// The same, where the tensor keeps its slot and is written and offloaded again.
TEST_F(CopiesTest, ATensorsOwnSlotIsWrittenAgainAfterItsLastRead) {
  ResidentTensor& copied = tensor(1, kSlot);
  const LaneUse filled = fill(copied, 31);
  ASSERT_TRUE(ensure_slot(memory_, copied));
  ASSERT_EQ(copy_out(memory_, copied, {}, testing::SmallDevice::uses_of(filled)), CUDA_SUCCESS);
  device_.driver.run_all();
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, copied, {}, {}, &done), CUDA_SUCCESS);
  device_.driver.clear();
  ASSERT_EQ(copy_out(memory_, copied, {}, {}), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.count("cuStreamWaitEvent"), 1u);
}

// Only reloads that read the slot count: others may wait for long.
TEST_F(CopiesTest, OtherReloadsDoNotHoldACopyOutUp) {
  ResidentTensor& old = tensor(1, kSlot);
  ResidentTensor& other = tensor(1, kSlot);
  ResidentTensor& leaving = tensor(1, kSlot);
  for (ResidentTensor* const each : {&old, &other, &leaving}) {
    ASSERT_TRUE(ensure_slot(memory_, *each));
    ASSERT_EQ(copy_out(memory_, *each, {}, testing::SmallDevice::uses_of(fill(*each, 51))), CUDA_SUCCESS);
  }
  LaneUse done;
  ASSERT_EQ(copy_in(memory_, old, {}, {}, &done), CUDA_SUCCESS);
  device_.driver.run_all();
  const LaneUse late = fill(other, 52);  // has not run yet
  ASSERT_EQ(copy_in(memory_, other, {}, testing::SmallDevice::uses_of(late), &done), CUDA_SUCCESS);
  drop_host_copy(memory_, old);  // its reload is complete
  ASSERT_EQ(copy_out(memory_, leaving, {}, {}), CUDA_SUCCESS);
  while (device_.driver.step(memory_.lanes.stream(Lanes::kToHost))) {
  }
  EXPECT_TRUE(memory_.lanes.complete(leaving.host_ready()));
}

// What the driver does not order, the host waits for: a position on the lane that copies to the host covers the digest.
// Where that is refused as well, the copy counts for nothing, and the tensor knows of the reader.
TEST_F(CopiesTest, ADigestThatIsNotOrderedKeepsTheBytesInTheirPlace) {
  for (const bool host_may_wait : {true, false}) {
    ResidentTensor& leaving = tensor(1, kSlot);
    const LaneUse filled = fill(leaving, 61);
    ASSERT_TRUE(ensure_slot(memory_, leaving));
    device_.driver.fail("cuStreamWaitEvent", 4, CUDA_ERROR_UNKNOWN);  // the copy behind the digest's end
    if (!host_may_wait) device_.driver.fail("cuEventSynchronize", 1, CUDA_ERROR_UNKNOWN);
    DigestCheck none;
    const CUresult result = copy_out_compared(memory_, leaving, {}, testing::SmallDevice::uses_of(filled), &none, true);
    device_.driver.heal();
    EXPECT_EQ(result == CUDA_SUCCESS, host_may_wait);
    EXPECT_EQ(leaving.host_valid(), host_may_wait);
    const bool known = std::any_of(leaving.uses.begin(), leaving.uses.end(),
                                   [](const LaneUse& use) { return use.lane == Lanes::kDigests; });
    EXPECT_EQ(known, !host_may_wait);
    const LaneUse read{Lanes::kDigests, memory_.lanes[Lanes::kDigests].issued};
    EXPECT_EQ(memory_.lanes.known_complete(read), host_may_wait);
    device_.driver.run_all();
  }
}

// The digest of what leaves comes before the copy's end or behind it; the lane is held up by neither but for its end.
TEST_F(CopiesTest, ADigestIsComputedBesideItsCopy) {
  const CUstream to_host = memory_.lanes.stream(Lanes::kToHost), digests = memory_.lanes.stream(Lanes::kDigests);
  const auto run = [this](CUstream stream) {
    while (device_.driver.step(stream)) {
    }
  };
  for (const bool digest_first : {true, false}) {
    ResidentTensor& leaving = tensor(1, kSlot);
    const LaneUse filled = fill(leaving, 61);
    ASSERT_TRUE(ensure_slot(memory_, leaving));
    DigestCheck none;
    ASSERT_EQ(copy_out_compared(memory_, leaving, {}, testing::SmallDevice::uses_of(filled), &none, true),
              CUDA_SUCCESS);
    const LaneUse both{Lanes::kToHost, memory_.lanes[Lanes::kToHost].issued};
    run(to_host);
    run(digests);
    EXPECT_FALSE(memory_.lanes.complete(leaving.digest.computed)) << "the program's work is first";
    run(memory_.lanes.stream(lane_));
    while (digest_first && !memory_.lanes.complete(leaving.digest.computed) && device_.driver.step(to_host))
      run(digests);
    EXPECT_EQ(memory_.lanes.complete(leaving.digest.computed), digest_first);
    if (digest_first) {
      EXPECT_FALSE(memory_.lanes.complete(leaving.host_ready())) << "the digest waited for the copy";
    } else {
      run(to_host);
      EXPECT_TRUE(memory_.lanes.complete(leaving.host_ready()));
      EXPECT_FALSE(memory_.lanes.complete(both)) << "the digest still reads the bytes";
    }
    device_.driver.run_all();
    EXPECT_TRUE(memory_.lanes.complete(both));
    EXPECT_NE(leaving.digest.cell, kNoDigest);
  }
}

// A tensor that was other each time is compared more and more seldom.
TEST_F(CopiesTest, WhatAlwaysChangesIsSeldomCompared) {
  ResidentTensor& leaving = tensor(1, kSlot);
  ASSERT_TRUE(ensure_slot(memory_, leaving));
  std::vector<uint64_t> compared;
  for (uint64_t i = 0; i < 100; ++i) {
    fill(leaving, 100 + i);
    device_.driver.run_all();
    leaving.wrote();
    DigestCheck comparison = begin_comparison(memory_, leaving, {}, {});
    device_.driver.run_all();
    memory_.lanes.poll();
    if (comparison.cell != kNoDigest) {
      compared.push_back(i);
      EXPECT_FALSE(end_comparison(memory_, leaving, comparison));
    }
    ASSERT_EQ(copy_out_compared(memory_, leaving, {}, {}, &comparison, true), CUDA_SUCCESS);
    device_.driver.run_all();
    memory_.lanes.poll();
  }
  EXPECT_EQ(compared, (std::vector<uint64_t>{1, 4, 19, 82}));
}

TEST_F(CopiesTest, AFullHostTierHasNoSlot) {
  ResidentTensor& first = tensor(2, 8 * kSlot);
  ASSERT_TRUE(ensure_slot(memory_, first));
  const HostSlot kept = first.host;
  EXPECT_TRUE(ensure_slot(memory_, first)) << "it has one already";
  EXPECT_EQ(first.host.size(), kept.size());
  ResidentTensor& second = tensor(2, 3 * kSlot);
  EXPECT_FALSE(ensure_slot(memory_, second));
  EXPECT_TRUE(second.host.empty());
  drop_host_copy(memory_, first);
  EXPECT_TRUE(ensure_slot(memory_, second));
}

TEST_F(CopiesTest, TheTableFindsTensorsByTheirStart) {
  Tensors& tensors = memory_.tensors;
  ResidentTensor* const made = tensors.insert(next_, 5, 1);
  EXPECT_EQ(tensors.find(next_), made);
  EXPECT_EQ(tensors.find(next_ + 1), nullptr);
  EXPECT_EQ(tensors.insert(next_, 7, 1)->size, 7u) << "an address that is used again is another tensor";
  EXPECT_EQ(tensors.size(), 1u);
  tensors.erase(next_);
  EXPECT_EQ(tensors.find(next_), nullptr);
}

}  // namespace
}  // namespace reprise::replay

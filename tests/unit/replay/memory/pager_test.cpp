// The pager on a fake driver with real bytes: what is evicted and what is not, what a call costs, what a refusal leaves
// behind.
#include "replay/memory/pager.h"

#include "tests/support/test.h"
#include "tests/unit/replay/memory/paged_program.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class PagerTest : public ::testing::Test {
 protected:
  ~PagerTest() override {
    program_.device.driver.run_all();
    EXPECT_EQ(program_.wrong, 0u);
    EXPECT_EQ(program_.device.driver.violations, Calls{});
  }
  CUresult use(std::vector<ResidentTensor*> set) { return program_.kernel(lane_, set, set); }
  CUresult read(std::vector<ResidentTensor*> set) { return program_.kernel(lane_, set, {}); }
  uint64_t vmm_calls() const {
    return driver_.count("cuMemMap") + driver_.count("cuMemUnmap") + driver_.count("cuMemSetAccess");
  }

  Program program_{4};
  testing::FakeDriver& driver_ = program_.device.driver;
  ManagedMemory& memory_ = program_.device.memory;
  Pager& pager_ = program_.pager;
  LaneIndex lane_ = program_.device.new_lane();
};

TEST_F(PagerTest, WhatIsResidentCostsNoCall) {
  ResidentTensor& a = program_.tensor(2);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  driver_.clear();
  ASSERT_EQ(use({&a, &a}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.calls(), Calls{});
  EXPECT_EQ(pager_.largest_working_set(), 2u) << "a tensor counts once";
}

TEST_F(PagerTest, EvictsWhatWasNotUsedForLongest) {
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(1);
  ResidentTensor& c = program_.tensor(1);
  ResidentTensor& d = program_.tensor(1);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&c}), CUDA_SUCCESS);
  ASSERT_EQ(read({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&d}), CUDA_SUCCESS);
  EXPECT_FALSE(b.is_resident());
  EXPECT_TRUE(a.is_resident() && c.is_resident() && d.is_resident()) << "no more than needed";
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  EXPECT_FALSE(c.is_resident());
  EXPECT_TRUE(a.is_resident());
}

TEST_F(PagerTest, NeverEvictsWhatTheCallNeeds) {
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(2);
  ResidentTensor& c = program_.tensor(2);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  // a is the oldest, but needed: b has to go.
  ASSERT_EQ(use({&c, &a}), CUDA_SUCCESS);
  EXPECT_TRUE(a.is_resident() && c.is_resident());
  EXPECT_FALSE(b.is_resident());
}

TEST_F(PagerTest, MovesOnlyBytesThatHaveToMove) {
  ResidentTensor& written = program_.tensor(2);
  ResidentTensor& clean = program_.tensor(2);
  ResidentTensor& other = program_.tensor(4);
  ASSERT_EQ(use({&written}), CUDA_SUCCESS);
  ASSERT_EQ(read({&clean}), CUDA_SUCCESS);
  ASSERT_EQ(read({&other}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuMemcpyDtoHAsync"), 1u) << "the program never wrote the second one";
  ASSERT_EQ(read({&written, &clean}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuMemcpyHtoDAsync"), 1u);
  ASSERT_EQ(read({&other}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuMemcpyDtoHAsync"), 1u) << "its bytes are on the host already";
  ASSERT_EQ(use({&written}), CUDA_SUCCESS);
  ASSERT_EQ(read({&other}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuMemcpyDtoHAsync"), 2u) << "they are not any more";
}

TEST_F(PagerTest, ComingHomeCostsNoMapping) {
  ResidentTensor& a = program_.tensor(4);
  ResidentTensor& b = program_.tensor(4);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  driver_.clear();
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(use({&a}), CUDA_SUCCESS);
    ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  }
  EXPECT_EQ(vmm_calls(), 0u);
  EXPECT_EQ(driver_.count("cuEventSynchronize") + driver_.count("cuCtxSynchronize"), 0u) << "and the host never waits";
}

TEST_F(PagerTest, AFreedRangeIsNotCopiedAndItsMappingServesTheNextTensorThere) {
  ResidentTensor& a = program_.tensor(4);
  const CUdeviceptr base = a.base;
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  program_.free(a);
  EXPECT_EQ(memory_.tensors.find(base), nullptr);
  EXPECT_EQ(memory_.chunks.available(), 4u);
  driver_.clear();
  ResidentTensor& b = program_.at(base, 4);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  EXPECT_EQ(vmm_calls() + driver_.count("cuMemcpyDtoHAsync"), 0u);
}

TEST_F(PagerTest, ACallThatIsTooLargeChangesNothing) {
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(3);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  driver_.clear();
  EXPECT_EQ(use({&a, &b}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(driver_.calls(), Calls{});
  EXPECT_TRUE(a.is_resident());
  EXPECT_EQ(pager_.shortage().needed_bytes, 5 * program_.device.chunk_bytes);
  EXPECT_EQ(pager_.shortage().limit_bytes, 4 * program_.device.chunk_bytes);
  EXPECT_FALSE(pager_.shortage().host_full);
  EXPECT_EQ(pager_.largest_working_set(), 5u);
  EXPECT_EQ(use({&b}), CUDA_SUCCESS) << "later calls are served";
}

TEST_F(PagerTest, ALimitThatFollowsTheProgramIsAskedFirst) {
  pager_.hooks.user = &memory_;
  pager_.hooks.before_fit = [](void* memory, uint64_t chunks) noexcept {
    static_cast<ManagedMemory*>(memory)->chunks.set_limit(chunks);
  };
  ResidentTensor& a = program_.tensor(6);
  EXPECT_EQ(use({&a}), CUDA_SUCCESS);
}

TEST_F(PagerTest, LostBytesAreAnError) {
  ResidentTensor& a = program_.tensor(1);
  a.lose();
  EXPECT_EQ(use({&a}), CUDA_ERROR_ILLEGAL_STATE);
}

TEST_F(PagerTest, ALowerLimitIsReachedBeforeTheNextCall) {
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(2);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  memory_.chunks.set_limit(2);
  ASSERT_EQ(read({&b}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.bytes, 2 * program_.device.chunk_bytes);
  EXPECT_EQ(driver_.count("cuMemRelease"), 2u);
  EXPECT_FALSE(a.is_resident());
  ASSERT_EQ(read({&a}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.bytes, 2 * program_.device.chunk_bytes);
}

TEST_F(PagerTest, ADeviceThatIsFullerThanTheLimitIsMadeDoWith) {
  driver_.capacity = 3 * program_.device.chunk_bytes;
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(2);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(use({&a}), CUDA_SUCCESS);
    ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  }
  EXPECT_EQ(memory_.chunks.limit(), 3u);
  EXPECT_EQ(use({&a, &b}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(read({&a}), CUDA_SUCCESS);
}

TEST_F(PagerTest, WhatIsRefusedOnceIsHadTheSecondTime) {
  driver_.fail("cuMemCreate", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  ResidentTensor& a = program_.tensor(2);
  EXPECT_EQ(use({&a}), CUDA_ERROR_ILLEGAL_ADDRESS) << "that is no lack of memory";
  driver_.fail("cuMemCreate", 2);
  EXPECT_EQ(use({&a}), CUDA_SUCCESS);
  EXPECT_EQ(memory_.chunks.limit(), 4u);
  ResidentTensor& b = program_.tensor(2);
  driver_.fail("cuMemMap", 2);
  EXPECT_EQ(use({&b}), CUDA_SUCCESS);
  driver_.fail("cuMemCreate", 1);
  driver_.fail("cuMemMap", 1);
  ResidentTensor& small = program_.small(8);
  EXPECT_EQ(use({&small}), CUDA_SUCCESS);
}

// Strict safety maps chunks for its copies, too: for each of its mappings, what is refused once is had the second time.
TEST(PagerStrictTest, AMappingThatIsRefusedOnceIsHadTheSecondTime) {
  for (int refused = 1; refused <= 6; ++refused) {
    Program program(4, 64 * HostTier::kSlotUnit, testing::Safety::strict);
    const LaneIndex lane = program.device.new_lane();
    ResidentTensor& a = program.tensor(3);
    ResidentTensor& b = program.tensor(3);
    ASSERT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
    program.device.driver.fail("cuMemMap", refused);
    EXPECT_EQ(program.kernel(lane, {&b}, {&b}), CUDA_SUCCESS) << refused;
    EXPECT_FALSE(a.is_resident());
    program.device.driver.fail("cuMemMap", refused);
    EXPECT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS) << refused;
    program.device.driver.run_all();
    EXPECT_EQ(program.wrong, 0u);
    EXPECT_EQ(program.device.driver.violations, Calls{});
  }
}

// Work that nobody announces may be the first to touch a tensor: a captured memset, a kernel with a hidden pointer.
TEST(PagerStrictTest, WhatNothingHasTouchedIsMappedAheadWhereThereIsRoom) {
  Program program(4, 64 * HostTier::kSlotUnit, testing::Safety::strict);
  testing::FakeDriver& driver = program.device.driver;
  const LaneIndex lane = program.device.new_lane();
  ResidentTensor& a = program.tensor(2);
  ASSERT_EQ(program.pager.allocated(a, lane), CUDA_SUCCESS);
  EXPECT_TRUE(a.is_resident());
  EXPECT_TRUE(driver.mapped(a.base));
  EXPECT_TRUE(driver.mapped(a.base + program.device.chunk_bytes));
  ResidentTensor& b = program.tensor(1);
  ASSERT_EQ(program.pager.allocated(b, kNoLane), CUDA_SUCCESS);
  EXPECT_TRUE(driver.mapped(b.base)) << "where there is no stream, too";
  ASSERT_EQ(program.kernel(lane, {&b}, {&b}, {&a}), CUDA_SUCCESS);
  // Nothing leaves for it, and a chunk that is not enough is not kept.
  ResidentTensor& c = program.tensor(2);
  ASSERT_EQ(program.pager.allocated(c, lane), CUDA_SUCCESS);
  EXPECT_FALSE(c.is_resident());
  EXPECT_FALSE(driver.mapped(c.base));
  EXPECT_TRUE(a.is_resident() && b.is_resident());
  EXPECT_EQ(program.device.memory.chunks.available(), 1u);
  driver.run_all();
  EXPECT_FALSE(program.faulted);
  EXPECT_EQ(program.wrong, 0u);
  EXPECT_EQ(driver.violations, Calls{});
}

// A driver that refuses it leaves the tensor as it is without: it comes when it is needed.
TEST(PagerStrictTest, WhatCannotBeMappedAheadComesWhenItIsNeeded) {
  for (const auto& [refused, first] :
       {std::pair{"cuMemCreate", 1}, {"cuMemCreate", 2}, {"cuMemMap", 1}, {"cuMemMap", 2}, {"cuMemSetAccess", 1}}) {
    SCOPED_TRACE(refused);
    Program program(4, 64 * HostTier::kSlotUnit, testing::Safety::strict);
    testing::FakeDriver& driver = program.device.driver;
    const LaneIndex lane = program.device.new_lane();
    ResidentTensor& a = program.tensor(2);
    for (int nth = first; nth < first + 4; ++nth) driver.fail(refused, nth);
    ASSERT_EQ(program.pager.allocated(a, lane), CUDA_SUCCESS);
    EXPECT_TRUE(a.is_away());
    EXPECT_EQ(program.device.memory.chunks.available(), 4u);
    driver.heal();
    ASSERT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
    driver.run_all();
    EXPECT_EQ(program.wrong, 0u);
    EXPECT_EQ(driver.violations, Calls{});
  }
}

// The limit allows the call, the device does not, which shows when one chunk of two is made: nothing that the call
// needs is evicted for it, and the chunk is free again.
TEST_F(PagerTest, ACallThatTheDeviceHasNoRoomForLeavesItsTensors) {
  driver_.capacity = 3 * program_.device.chunk_bytes;
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(2);
  ResidentTensor& c = program_.tensor(1);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  driver_.clear();
  EXPECT_EQ(use({&a, &b}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(a.is_resident());
  EXPECT_FALSE(b.is_resident());
  EXPECT_EQ(driver_.count("cuMemcpyDtoHAsync"), 0u);
  EXPECT_EQ(memory_.chunks.available(), 1u);
  EXPECT_EQ(use({&a, &c}), CUDA_SUCCESS);
}

TEST_F(PagerTest, OldMappingsGoWhenThereAreTooMany) {
  pager_.mappings.limit = 6;
  std::vector<ResidentTensor*> tensors;
  for (int i = 0; i < 4; ++i) tensors.push_back(&program_.tensor(2));
  for (ResidentTensor* tensor : tensors) ASSERT_EQ(use({tensor}), CUDA_SUCCESS);
  EXPECT_LE(memory_.mappings.mapped_chunks(), 6u);
  EXPECT_EQ(memory_.mappings.find(tensors[0]->base), nullptr) << "the one that was not used for longest";
  EXPECT_NE(memory_.mappings.find(tensors[1]->base), nullptr);
  EXPECT_EQ(read({tensors[0]}), CUDA_SUCCESS);
}

TEST_F(PagerTest, EverythingThatFitsComesInNewestFirst) {
  ResidentTensor& a = program_.tensor(2);
  ResidentTensor& b = program_.tensor(1);
  ResidentTensor& c = program_.tensor(2);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&b}), CUDA_SUCCESS);
  ASSERT_EQ(use({&c}), CUDA_SUCCESS);
  EXPECT_EQ(pager_.make_all_resident(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pager_.shortage().needed_bytes, 5 * program_.device.chunk_bytes);
  EXPECT_TRUE(b.is_resident() && c.is_resident());
  EXPECT_FALSE(a.is_resident());
  program_.free(b);
  EXPECT_EQ(pager_.make_all_resident(), CUDA_SUCCESS);
  EXPECT_TRUE(a.is_resident() && c.is_resident());
}

TEST_F(PagerTest, SmallTensorsComeAndGoAsABlock) {
  const uint64_t chunk = program_.device.chunk_bytes;
  ResidentTensor& a = program_.small(512);
  ResidentTensor& b = program_.small(1024);
  ASSERT_EQ(use({&a}), CUDA_SUCCESS);
  ASSERT_EQ(use({&a, &b}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuMemMap"), 1u);
  EXPECT_EQ(pager_.largest_working_set(), 1u) << "a block counts once";
  ResidentTensor& other_block = program_.small(chunk - 1024);
  ASSERT_EQ(use({&other_block}), CUDA_SUCCESS);
  ResidentTensor& large = program_.tensor(3);
  ASSERT_EQ(use({&large}), CUDA_SUCCESS);
  EXPECT_FALSE(program_.resident(a) || program_.resident(b)) << "the block that was used longest ago left";
  EXPECT_TRUE(program_.resident(other_block));
  ASSERT_EQ(read({&b, &a}), CUDA_SUCCESS) << "with its bytes";
}

TEST_F(PagerTest, BlocksLeaveLast) {
  ResidentTensor& small = program_.small(512);
  ASSERT_EQ(use({&small}), CUDA_SUCCESS);
  ResidentTensor& large = program_.tensor(3);
  ASSERT_EQ(use({&large}), CUDA_SUCCESS);
  ResidentTensor& next = program_.tensor(1);
  ASSERT_EQ(use({&next}), CUDA_SUCCESS);
  EXPECT_TRUE(program_.resident(small)) << "many tensors live in a block";
  EXPECT_FALSE(large.is_resident());
  ResidentTensor& all = program_.tensor(4);
  ASSERT_EQ(use({&all}), CUDA_SUCCESS) << "all but what a call needs may leave";
  EXPECT_FALSE(program_.resident(small));
}

TEST_F(PagerTest, ABlockGoesWithTheLastTensorInIt) {
  ResidentTensor& first = program_.small(512);
  ResidentTensor& second = program_.small(512);
  ASSERT_EQ(use({&first, &second}), CUDA_SUCCESS);
  program_.free(first);
  EXPECT_EQ(memory_.blocks.size(), 1u);
  EXPECT_EQ(memory_.chunks.available(), 3u);
  program_.free(second);
  EXPECT_EQ(memory_.blocks.size(), 0u);
  EXPECT_EQ(memory_.chunks.available(), 4u);
}

// The next tensor there may be of another stream: it waits for the work that was before the free, and no other does.
TEST_F(PagerTest, APlaceThatWasFreedIsWaitedForByItsNextTensorAlone) {
  ResidentTensor& stays = program_.small(512);
  ResidentTensor& gone = program_.small(512);
  const CUdeviceptr place = gone.base;
  ASSERT_EQ(use({&stays, &gone}), CUDA_SUCCESS);
  program_.free(gone);
  const LaneIndex other = program_.device.new_lane();
  driver_.clear();
  ASSERT_EQ(program_.kernel(other, {&stays}, {}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuStreamWaitEvent"), 0u);
  ResidentTensor& next = program_.small(300, other);
  ASSERT_EQ(next.base, place);
  ASSERT_EQ(program_.kernel(other, {&next}, {&next}), CUDA_SUCCESS);
  EXPECT_EQ(driver_.count("cuStreamWaitEvent"), 1u);
}

TEST_F(PagerTest, AFullHostTierIsSaid) {
  Program program(4, 2 * HostTier::kSlotUnit);
  const LaneIndex lane = program.device.new_lane();
  ResidentTensor& a = program.tensor(4);
  ResidentTensor& b = program.tensor(4);
  ASSERT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
  EXPECT_EQ(program.kernel(lane, {&b}, {}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(program.pager.shortage().host_full);
  EXPECT_TRUE(a.is_resident());
  EXPECT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
  program.device.driver.run_all();
  EXPECT_EQ(program.wrong, 0u);
}

// Resident tensors keep the slots of their host copies as long as there is room: where there is not, those go.
TEST_F(PagerTest, HostCopiesOfResidentTensorsMakeRoomForAnEviction) {
  Program program(4, 6 * HostTier::kSlotUnit);
  const LaneIndex lane = program.device.new_lane();
  std::vector<ResidentTensor*> tensors;
  for (int i = 0; i < 4; ++i) tensors.push_back(&program.tensor(2));
  for (ResidentTensor* tensor : tensors) ASSERT_EQ(program.kernel(lane, {tensor}, {tensor}), CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) {
    for (ResidentTensor* tensor : tensors) EXPECT_EQ(program.kernel(lane, {tensor}, {}), CUDA_SUCCESS) << round;
  }
  program.device.driver.run_all();
  EXPECT_EQ(program.wrong, 0u);
  EXPECT_LE(program.device.memory.host.capacity(), 6 * HostTier::kSlotUnit);
}

TEST_F(PagerTest, AnEvictionFromOutsideDropsNoHostCopy) {
  Program program(4, 2 * HostTier::kSlotUnit);
  const LaneIndex lane = program.device.new_lane();
  ResidentTensor& a = program.tensor(2);
  ResidentTensor& b = program.tensor(2);
  ASSERT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
  ASSERT_EQ(program.pager.evict(a), CUDA_SUCCESS);
  ASSERT_EQ(program.kernel(lane, {&a, &b}, {&b}), CUDA_SUCCESS);
  EXPECT_EQ(program.pager.evict(b), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_TRUE(a.host_valid()) << "a plan that is entered counts on it";
  EXPECT_TRUE(b.is_resident());
  ResidentTensor& c = program.tensor(2);
  ASSERT_EQ(program.kernel(lane, {&c, &a}, {}), CUDA_SUCCESS) << "for a call it goes";
  EXPECT_FALSE(a.host_valid());
}

// Each refusal in turn: the call may answer it, but afterwards all bytes are as they were and all chunks are accounted
// for.
TEST_F(PagerTest, ARefusedCallLosesNothing) {
  for (const char* function :
       {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync",
        "cuEventRecord", "cuEventCreate", "cuStreamWaitEvent", "cuEventSynchronize", "cuMemHostAlloc"}) {
    for (int nth = 1; nth <= 3; ++nth) {
      Program program(4);
      const LaneIndex lane = program.device.new_lane();
      program.pager.mappings.limit = 6;
      std::vector<ResidentTensor*> tensors;
      for (const uint64_t chunks : {2u, 1u, 3u, 2u, 1u}) tensors.push_back(&program.tensor(chunks));
      bool refused = false;
      for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < tensors.size(); ++i) {
          if (round == 1 && i == 0) program.device.driver.fail(function, nth, CUDA_ERROR_UNKNOWN);
          CUresult result = program.kernel(lane, {tensors[i], tensors[(i + 1) % 2]}, {tensors[i]});
          if (result == CUDA_SUCCESS) continue;
          EXPECT_FALSE(refused) << function << nth << ": once";
          refused = true;
          EXPECT_EQ(program.kernel(lane, {tensors[i], tensors[(i + 1) % 2]}, {tensors[i]}), CUDA_SUCCESS) << function;
        }
      }
      program.device.driver.run_all();
      EXPECT_EQ(program.wrong, 0u) << function << nth;
      EXPECT_EQ(program.device.driver.violations, Calls{}) << function << nth;
      for (ResidentTensor* tensor : tensors) program.free(*tensor);
      EXPECT_EQ(program.device.memory.chunks.available(), program.device.memory.chunks.limit()) << function << nth;
    }
  }
}

// A slot of two pieces, the copy of the second refused: the first one may run long after that, when the tensor is freed
// and its range is mapped anew.
TEST_F(PagerTest, WhatARefusedCopyLeftWithTheDriverIsWaitedFor) {
  for (const bool reload : {false, true}) {
    Program program(4, 4 * HostTier::kSlotUnit);
    ManagedMemory& memory = program.device.memory;
    HostSlot slots[4];
    for (HostSlot& slot : slots) ASSERT_TRUE(memory.host.allocate(HostTier::kSlotUnit, &slot));
    memory.host.release(&slots[1]);
    memory.host.release(&slots[3]);
    const LaneIndex lane = program.device.new_lane();
    ResidentTensor& a = program.tensor(2);
    ASSERT_EQ(program.kernel(lane, {&a}, {&a}), CUDA_SUCCESS);
    if (reload) {
      ASSERT_EQ(program.pager.evict(a), CUDA_SUCCESS);
      ASSERT_EQ(a.host.size(), 2u);
      program.device.driver.fail("cuMemcpyHtoDAsync", 2, CUDA_ERROR_UNKNOWN);
      EXPECT_EQ(program.pager.make_resident({&a}), CUDA_ERROR_UNKNOWN);
    } else {
      program.device.driver.fail("cuMemcpyDtoHAsync", 2, CUDA_ERROR_UNKNOWN);
      EXPECT_EQ(program.pager.evict(a), CUDA_ERROR_UNKNOWN);
    }
    const CUdeviceptr base = a.base;
    program.free(a);
    ResidentTensor& b = program.at(base + program.device.chunk_bytes, 1);  // the old mapping has to go
    ASSERT_EQ(program.kernel(lane, {&b}, {&b}), CUDA_SUCCESS);
    program.device.driver.run_all();
    EXPECT_EQ(program.device.driver.violations, Calls{}) << (reload ? "reload" : "offload");
    EXPECT_EQ(program.wrong, 0u);
  }
}

}  // namespace
}  // namespace reprise::replay

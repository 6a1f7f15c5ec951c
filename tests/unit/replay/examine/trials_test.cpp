// A launch that is tried again, on a fake driver: what it does alone, and beside another kernel.
#include "replay/examine/trials.h"

#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

class TrialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_.driver.runs_when_asked = true;
    ASSERT_EQ(device_.memory.mappings.map(address_, device_.take(1)), CUDA_SUCCESS);
    write_ = [this] { device_.driver.write(address_, 7); };
  }
  void TearDown() override { EXPECT_EQ(device_.driver.violations, std::vector<std::string>{}); }

  static CUresult launch(void* test) noexcept {
    auto& self = *static_cast<TrialsTest*>(test);
    self.device_.driver.launch(self.device_.memory.lanes.stream(self.lane_), self.write_);
    return CUDA_SUCCESS;
  }

  facts::KernelFacts examine(std::vector<TriedOperand> operands) {
    facts::KernelFacts facts;
    HostCopies copies;
    Trials trials(&device_.memory.lanes, &device_.memory.digests, &copies, lane_, std::move(operands), {&launch, this});
    EXPECT_TRUE(trials.keep());
    bool done = false;
    EXPECT_EQ(trials.first(&done), CUDA_SUCCESS);
    device_.memory.lanes.advance(lane_);
    EXPECT_TRUE(done);
    EXPECT_TRUE(trials.run(&facts));
    return facts;
  }

  facts::KernelFacts examine() { return examine({{address_, 64, 0, false, false}}); }

  testing::SmallDevice device_{4};
  const LaneIndex lane_ = device_.new_lane();
  const CUdeviceptr address_ = device_.memory.arena.plan.base;
  std::function<void()> write_;
};

TEST_F(TrialsTest, WhatMakesTheSameAgainIsPure) {
  const facts::KernelFacts facts = examine();
  EXPECT_EQ(facts.equal, 1u);
  EXPECT_EQ(facts.unequal, 0u);
  EXPECT_EQ(device_.driver.read(address_), 7u);
}

// As where atomics add floats: in another order, when others take turns with its blocks.
TEST_F(TrialsTest, WhatMakesOtherBytesBesideAnotherKernelIsNotPure) {
  write_ = [this] {
    device_.driver.write(address_, device_.driver.idle_but(device_.memory.lanes.stream(lane_)) ? 7 : 8);
  };
  const facts::KernelFacts facts = examine();
  EXPECT_EQ(facts.equal, 0u);
  EXPECT_EQ(facts.unequal, 1u);
  EXPECT_EQ(device_.driver.read(address_), 7u) << "the program's own launch ran alone";
}

// Without digests it is tried alone.
TEST_F(TrialsTest, ADeviceThatComputesNoDigestsExaminesAllTheSame) {
  device_.driver.fail("cuModuleLoadData", 1);
  EXPECT_EQ(examine().equal, 1u);
}

// Whether the device compares or the host does.
TEST_F(TrialsTest, WhatIsReadAndWhatIsWrittenIsSeenWithDigestsAndWithout) {
  const CUdeviceptr input = address_ + device_.chunk_bytes;
  ASSERT_EQ(device_.memory.mappings.map(input, device_.take(1)), CUDA_SUCCESS);
  const uint64_t numbers = 0x4048f5c33f9d70a4;
  write_ = [this, input] { device_.driver.write(address_, 3 * device_.driver.read(input)); };
  for (const bool digests : {true, false}) {
    device_.driver.write(address_, 0);
    device_.driver.write(input, numbers);
    if (!digests) device_.memory.digests.close();
    if (!digests) device_.driver.fail("cuModuleLoadData", 1);
    const facts::KernelFacts facts = examine({{address_, 8, 0, false, false}, {input, 8, 8, false, false}});
    EXPECT_EQ(facts.equal, 1u) << digests;
    ASSERT_EQ(facts.slots.size(), 2u);
    EXPECT_EQ(facts.slots[0].overwritten, 1u) << digests;
    EXPECT_EQ(facts.slots[1].kept, 1u) << digests;
    EXPECT_EQ(facts.slots[1].reached, 1u) << digests;
    EXPECT_EQ(device_.driver.read(address_), 3 * numbers) << digests;
    EXPECT_EQ(device_.driver.read(input), numbers) << digests;
  }
}

}  // namespace
}  // namespace reprise::replay

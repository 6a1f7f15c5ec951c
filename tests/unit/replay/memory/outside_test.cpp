// Which part of what a device has less than before is the program's.
#include <gtest/gtest.h>

#include "replay/memory/budget.h"
#include "tests/unit/replay/fake_driver.h"

namespace reprise::replay {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class OutsideTest : public ::testing::Test {
 protected:
  OutsideTest() {
    driver_.capacity = 8192 * kMiB;
    outside_.open();
  }
  void first_launch(uint64_t code) {
    outside_.before_call();
    driver_.other_bytes += code;
    outside_.after_call();
  }

  testing::FakeDriver driver_;
  Outside outside_;
};

TEST_F(OutsideTest, WhatAnotherProcessTakesIsNotTheProgramsHoweverLittle) {
  for (const uint64_t bytes : {2 * kMiB, 16 * kMiB, 200 * kMiB, 4096 * kMiB}) {
    driver_.other_bytes += bytes;
    EXPECT_EQ(outside_.measure(0, 0), 0u) << bytes;
  }
  first_launch(3 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 3 * kMiB);
  driver_.other_bytes -= 4096 * kMiB;
  EXPECT_EQ(outside_.measure(0, 5 * kMiB), 8 * kMiB) << "and what hooks saw given";
}

// Eight programs at once on an H100: what the others allocated while cuBLAS was loaded counted, 2.4 GiB of it.
TEST_F(OutsideTest, WhatOthersTakeDuringACallCountsLittleOnceTheyAreSeen) {
  first_launch(900 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 900 * kMiB) << "it may be code";
  driver_.other_bytes += 1000 * kMiB;
  EXPECT_EQ(outside_.measure(0, 0), 64 * kMiB);
  first_launch(5 * kMiB);
  EXPECT_EQ(outside_.measure(0, 2 * kMiB), 71 * kMiB);
  driver_.other_bytes -= 1000 * kMiB;
  EXPECT_EQ(outside_.measure(0, 2 * kMiB), 71 * kMiB) << "they may come again";
}

TEST_F(OutsideTest, WhatOthersGiveBackShowsThem) {
  driver_.other_bytes += 1000 * kMiB;
  outside_.open();
  first_launch(300 * kMiB);
  driver_.other_bytes -= 1000 * kMiB;
  EXPECT_EQ(outside_.measure(0, 0), 0u) << "the device has more than at first";
  driver_.other_bytes += 1000 * kMiB;
  EXPECT_EQ(outside_.measure(0, 0), 64 * kMiB);
}

TEST_F(OutsideTest, WhatIsGivenBackCountsNoMore) {
  first_launch(30 * kMiB);
  first_launch(10 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 40 * kMiB);
  driver_.other_bytes -= 30 * kMiB;
  EXPECT_EQ(outside_.measure(0, 0), 10 * kMiB);
}

TEST_F(OutsideTest, OursAreNotOutside) {
  first_launch(2 * kMiB);
  EXPECT_EQ(outside_.measure(driver_.bytes, 0), 2 * kMiB);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(driver().cuMemCreate(&handle, 64 * kMiB, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(outside_.measure(driver_.bytes, 100 * kMiB), 2 * kMiB);
  EXPECT_EQ(outside_.room(), 8190 * kMiB - outside_.headroom()) << "what the device has left and ours";
}

// All that a device has is somebody's: others', this program's, or kept free.
TEST_F(OutsideTest, WhatOthersHoldIsNeitherOursNorTheProgramsNorFree) {
  driver_.other_bytes += 1000 * kMiB;
  first_launch(3 * kMiB);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(driver().cuMemCreate(&handle, 64 * kMiB, nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(outside_.measure(driver_.bytes, 0), 3 * kMiB);
  EXPECT_EQ(outside_.total(), 8192 * kMiB);
  EXPECT_EQ(outside_.elsewhere(), 1000 * kMiB);
  EXPECT_EQ(outside_.room() + outside_.bytes() + outside_.elsewhere() + outside_.headroom(), outside_.total());
}

TEST_F(OutsideTest, ACallThatCannotBeMeasuredTakesNothing) {
  driver_.fail("cuMemGetInfo", 2);
  first_launch(9 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 0u);
  driver_.fail("cuMemGetInfo", 1);
  first_launch(9 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 0u);
}

}  // namespace
}  // namespace reprise::replay

// Which part of what a device has less than before is the program's.
#include "preload/driver/own_memory.h"
#include "replay/memory/budget.h"
#include "tests/support/test.h"
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

TEST_F(OutsideTest, WhatWasHeldBeforeCounts) {
  driver_.other_bytes += 24 * kMiB;
  outside_.open(24 * kMiB, 30 * kMiB);
  EXPECT_EQ(outside_.bytes(), 24 * kMiB);
  EXPECT_EQ(outside_.measure(0, 30 * kMiB), 24 * kMiB);
  driver_.other_bytes += 5 * kMiB;
  EXPECT_EQ(outside_.measure(0, 35 * kMiB), 29 * kMiB);
  driver_.other_bytes -= 24 * kMiB;
  EXPECT_EQ(outside_.measure(0, 35 * kMiB), 5 * kMiB) << "it was given back";
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

// NVML, which has this process (or none, or another of its number) hold `own` besides its chunks.
class OutsideToldTest : public OutsideTest {
 protected:
  OutsideToldTest() {
    nvml_ = this;
    detail::driver_table.cuDeviceGetUuid = [](CUuuid* uuid, CUdevice) {
      *uuid = {"reprise-fake-dev"[0]};
      return CUDA_SUCCESS;
    };
    detail::driver_table.cuMemGetAllocationGranularity = [](size_t* bytes, const CUmemAllocationProp*,
                                                            CUmemAllocationGranularity_flags) {
      *bytes = 2 * kMiB;
      return CUDA_SUCCESS;
    };
    detail::take_nvml(&kFunctions);
    outside_.open();
  }
  ~OutsideToldTest() override { detail::take_nvml(nullptr); }

  void first_launch_beside(uint64_t code, uint64_t neighbours) {
    outside_.before_call();
    driver_.other_bytes += code + neighbours;
    own_ += code;
    outside_.after_call();
  }

  static int processes(nvml::Device, unsigned* count, nvml::ProcessInfo* infos) {
    ++nvml_->asked_;
    *count = nvml_->listed_;
    const auto own = static_cast<unsigned>(getpid());
    const uint64_t chunks = nvml_->is_another_ ? 0 : nvml_->driver_.bytes;
    if (nvml_->listed_ >= 1) infos[0] = {own + 1, 5000 * kMiB, nvml::kNoInstance, nvml::kNoInstance};
    for (unsigned i = 1; i < nvml_->listed_; ++i) {
      infos[i] = {own, nvml_->tells_ ? nvml_->own_ + chunks : nvml::kNotAvailable, nvml::kNoInstance,
                  nvml::kNoInstance};
    }
    return nvml::kSuccess;
  }
  static constexpr nvml::Functions kFunctions = {
      [] { return nvml::kSuccess; },
      [](const char* name, nvml::Device* device) {
        if (std::string_view(name) != "MIG-72000000-0000-0000-0000-000000000000") return nvml::kNotFound;
        *device = reinterpret_cast<nvml::Device>(uintptr_t{1});
        return nvml::kSuccess;
      },
      &processes};

  static inline OutsideToldTest* nvml_ = nullptr;
  uint64_t own_ = 500 * kMiB;
  unsigned listed_ = 2;
  bool tells_ = true;
  bool is_another_ = false;
  int asked_ = 0;
};

TEST_F(OutsideToldTest, WhatANeighbourTakesDuringACallIsNotTheProgramsOwn) {
  first_launch_beside(0, 4 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 0u);
  first_launch_beside(3 * kMiB, 900 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 3 * kMiB);
  EXPECT_EQ(driver_.bytes, 0u) << "of the chunk by which the figure was tried nothing is left";
}

TEST_F(OutsideToldTest, CodeIsNotCutWhereOthersAreSeen) {
  driver_.other_bytes += 1000 * kMiB;
  first_launch_beside(902 * kMiB, 10 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 902 * kMiB);
}

TEST_F(OutsideToldTest, WhatIsGivenBackMeanwhileHidesNothing) {
  driver_.other_bytes += 100 * kMiB;
  outside_.before_call();
  driver_.other_bytes -= 60 * kMiB;
  own_ += 20 * kMiB;
  outside_.after_call();
  EXPECT_EQ(outside_.measure(0, 0), 20 * kMiB);
}

// A context that no call around which we look has made.
TEST_F(OutsideToldTest, WhatNothingExplainsIsTheProgramsWhereNvmlSaysSo) {
  driver_.other_bytes += 300 * kMiB + 50 * kMiB;
  own_ += 300 * kMiB;
  EXPECT_EQ(outside_.measure(driver_.bytes, 0), 300 * kMiB);
  const int asked = asked_;
  EXPECT_EQ(outside_.measure(driver_.bytes, 0), 300 * kMiB);
  EXPECT_EQ(asked_, asked) << "nothing has changed since";
}

// As in a container: then it is as without NVML.
TEST_F(OutsideToldTest, WhereNobodyTellsWhatTheDeviceHasLessCounts) {
  const auto expect_as_without = [&](const char* why) {
    outside_.open();
    first_launch_beside(3 * kMiB, 4 * kMiB);
    EXPECT_EQ(outside_.measure(0, 0), 7 * kMiB) << why;
  };
  listed_ = 0;
  expect_as_without("no process is listed");
  listed_ = 1;
  expect_as_without("ours is not");
  listed_ = 3;
  expect_as_without("ours is listed twice");
  listed_ = 2;
  tells_ = false;
  expect_as_without("its memory is not told");
  tells_ = true;
  is_another_ = true;
  expect_as_without("it is another process of our number");
  is_another_ = false;
  first_launch_beside(0, 4 * kMiB);
  EXPECT_EQ(outside_.measure(0, 0), 3 * kMiB) << "by the next trial it is ours, and no neighbour's memory counts";
}

TEST_F(OutsideToldTest, AProcessThatDoesNotFollowIsNotTriedForEver) {
  is_another_ = true;
  for (int i = 0; i < 5; ++i) first_launch_beside(0, 4 * kMiB);
  EXPECT_EQ(driver_.count("cuMemCreate"), 3u);
}

TEST_F(OutsideToldTest, ACallThatTakesNothingIsAskedAboutOnce) {
  asked_ = 0;
  for (int i = 0; i < 10; ++i) first_launch_beside(0, 0);
  EXPECT_EQ(asked_, 10);
}

}  // namespace
}  // namespace reprise::replay

// Measuring the link on a fake driver: whichever of its calls fails, nothing is left that could do harm.
#include "replay/measure/link_rates.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

TEST(LinkRatesTest, ACopyThatIsRefusedLeavesNoneBehindOnAddressesThatAreGone) {
  for (const char* function :
       {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cuMemSetAccess", "cuMemMap", "cuMemUnmap"}) {
    for (const int nth : {1, 2, 5, 300}) {
      testing::SmallDevice device(4, 64 * 1024);
      device.driver.fail(function, nth);
      measure_link_rates(device.memory, [] { return uint64_t{0}; });
      device.driver.run_all();
      EXPECT_EQ(device.driver.violations, std::vector<std::string>{}) << function << " " << nth;
      EXPECT_EQ(device.memory.chunks.available(), 4u) << function << " " << nth;
    }
  }
}

// A link that wakes up: its first copies take four times as long, by a clock that nothing but copies moves.
uint64_t copies_before = 0;
uint64_t now_ns = 0;
CUresult copy_on_waking_link(CUdeviceptr, const void*, size_t, CUstream) {
  constexpr uint64_t kAwake = 250'000;
  now_ns += (copies_before++ < 12 ? 4 : 1) * kAwake;
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, WhatIsTimedIsNotALinkThatWakesUp) {
  constexpr uint64_t kChunk = 2u << 20;
  testing::SmallDevice device(4, kChunk);
  auto& table = const_cast<DriverTable&>(driver());
  table.cuMemcpyHtoDAsync = &copy_on_waking_link;
  table.cuMemcpyDtoHAsync = [](void*, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
  table.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  EXPECT_EQ(measure_link_rates(device.memory, [] { return now_ns; }).to_device, kChunk * 4000);
}

}  // namespace
}  // namespace reprise::replay

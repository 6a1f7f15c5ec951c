// Measuring the link on a fake driver: whichever of its calls fails, nothing is left that could do harm.
#include "replay/measure/link_rates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
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
      measure_link_rates(device.memory);
      device.driver.run_all();
      EXPECT_EQ(device.driver.violations, std::vector<std::string>{}) << function << " " << nth;
      EXPECT_EQ(device.memory.chunks.available(), 4u) << function << " " << nth;
    }
  }
}

// A link that wakes up: its first copies take four times as long.
uint64_t copies_before = 0;
CUresult copy_on_waking_link(CUdeviceptr, const void*, size_t, CUstream) {
  constexpr auto kAwake = std::chrono::microseconds(250);
  const auto end = std::chrono::steady_clock::now() + (copies_before++ < 12 ? 4 : 1) * kAwake;
  while (std::chrono::steady_clock::now() < end) {
  }
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, WhatIsTimedIsNotALinkThatWakesUp) {
  constexpr uint64_t kChunk = 2u << 20;
  constexpr uint64_t kAwakeRate = kChunk * 4000;
  uint64_t best = 0;
  for (int attempt = 0; attempt < 8 && best < kAwakeRate / 2; ++attempt) {  // the machine may be busy
    testing::SmallDevice device(4, kChunk);
    auto& table = const_cast<DriverTable&>(driver());
    table.cuMemcpyHtoDAsync = &copy_on_waking_link;
    table.cuMemcpyDtoHAsync = [](void*, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
    table.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
    copies_before = 0;
    best = std::max(best, measure_link_rates(device.memory).to_device);
  }
  EXPECT_GE(best, kAwakeRate / 2);
  EXPECT_LE(best, kAwakeRate * 11 / 10);
}

}  // namespace
}  // namespace reprise::replay

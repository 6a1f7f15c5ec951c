// Measuring the link on a fake driver: whichever of its calls fails, nothing is left that could do harm.
#include "replay/measure/link_rates.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

TEST(LinkRatesTest, ACopyThatIsRefusedLeavesNoneBehindOnAddressesThatAreGone) {
  for (const char* function :
       {"cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuEventCreate", "cuEventRecord", "cuEventSynchronize",
        "cuEventElapsedTime", "cuMemSetAccess", "cuMemMap", "cuMemUnmap"}) {
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

// A link that wakes up: its first copies take four times as long, by a device whose clock nothing but copies moves.
uint64_t copies_before = 0;
uint64_t now_ns = 0;
std::map<CUevent, uint64_t> recorded;
CUresult copy_on_waking_link(CUdeviceptr, const void*, size_t, CUstream) {
  constexpr uint64_t kAwake = 250'000;
  now_ns += (copies_before++ < 30 ? 4 : 1) * kAwake;
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, WhatIsTimedIsNotALinkThatWakesUp) {
  constexpr uint64_t kChunk = 2u << 20;
  testing::SmallDevice device(4, kChunk);
  auto& table = const_cast<DriverTable&>(driver());
  table.cuMemcpyHtoDAsync = &copy_on_waking_link;
  table.cuMemcpyDtoHAsync = [](void*, CUdeviceptr, size_t, CUstream) { return CUDA_SUCCESS; };
  table.cuEventRecord = [](CUevent event, CUstream) {
    recorded[event] = now_ns;
    return CUDA_SUCCESS;
  };
  table.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  table.cuEventElapsedTime = [](float* ms, CUevent begin, CUevent end) {
    *ms = static_cast<float>(recorded[end] - recorded[begin]) / 1e6f;
    return CUDA_SUCCESS;
  };
  const LinkRates rates = measure_link_rates(device.memory);
  EXPECT_GT(rates.remap_ns_per_chunk, 0u);
  EXPECT_NEAR(static_cast<double>(rates.h2d_bytes_per_s), kChunk * 4000.0, kChunk * 0.01);
}

}  // namespace
}  // namespace reprise::replay

// Measuring the link on a fake driver: whichever of its calls fails, nothing is left that could do harm.
#include "replay/measure/link_rates.h"

#include "tests/support/test.h"
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

// A device whose clock nothing but copies to it moves.
constexpr uint64_t kChunk = 2u << 20;
constexpr uint64_t kNsPerChunk = 250'000;
uint64_t bytes_before = 0;
uint64_t now_ns = 0;
std::map<CUevent, uint64_t> recorded;

class TimedLink : public testing::SmallDevice {
 public:
  using Copy = CUresult (*)(CUdeviceptr, const void*, size_t, CUstream);
  explicit TimedLink(Copy copy) : SmallDevice(4, kChunk) {
    bytes_before = now_ns = 0;
    recorded.clear();
    auto& table = const_cast<DriverTable&>(reprise::driver());
    table.cuMemcpyHtoDAsync = copy;
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
  }
};

uint64_t time_of(size_t bytes) { return bytes * kNsPerChunk / kChunk; }

// Its first copies take four times as long.
CUresult copy_on_waking_link(CUdeviceptr, const void*, size_t bytes, CUstream) {
  now_ns += (bytes_before < 30 * kChunk ? 4 : 1) * time_of(bytes);
  bytes_before += bytes;
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, WhatIsTimedIsNotALinkThatWakesUp) {
  TimedLink device(&copy_on_waking_link);
  const LinkRates rates = measure_link_rates(device.memory);
  EXPECT_GT(rates.remap_ns_per_chunk, 0u);
  EXPECT_NEAR(static_cast<double>(rates.h2d_bytes_per_s), kChunk * 4000.0, kChunk * 40.0);
}

// Of every 5 ms it gets one: a simulated link on a computer that does other work.
CUresult copy_on_busy_host(CUdeviceptr, const void*, size_t bytes, CUstream) {
  if (now_ns % 5'000'000 < 4'000'000) now_ns += 4'000'000 - now_ns % 5'000'000;
  now_ns += time_of(bytes);
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, ABusyHostDoesNotMakeTheLinkSlow) {
  TimedLink device(&copy_on_busy_host);
  EXPECT_NEAR(static_cast<double>(measure_link_rates(device.memory).h2d_bytes_per_s), kChunk * 4000.0, kChunk * 40.0);
}

// Each call takes the host a while, and the device does what it has been given: an event that is recorded while it has
// nothing to do is of before its copies came.
uint64_t host_ns = 0;
void give_to_device() {
  host_ns += 100'000;
  now_ns = std::max(now_ns, host_ns);
}
CUresult copy_from_slow_host(CUdeviceptr, const void*, size_t bytes, CUstream) {
  give_to_device();
  now_ns += time_of(bytes);
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, AHostThatIsSlowToGiveCopiesDoesNotMakeTheLinkSlow) {
  host_ns = 0;
  TimedLink device(&copy_from_slow_host);
  auto& table = const_cast<DriverTable&>(reprise::driver());
  table.cuEventRecord = [](CUevent event, CUstream) {
    give_to_device();
    recorded[event] = now_ns;
    return CUDA_SUCCESS;
  };
  table.cuEventSynchronize = [](CUevent) {
    host_ns = std::max(host_ns, now_ns);
    return CUDA_SUCCESS;
  };
  EXPECT_NEAR(static_cast<double>(measure_link_rates(device.memory).h2d_bytes_per_s), kChunk * 4000.0, kChunk * 80.0);
}

// Of a copy of a few bytes: small ones say nothing of the link.
constexpr uint64_t kNsPerCopy = 30'000;
uint64_t copies = 0;

// The thread that copies is late with ten of sixteen copies, by more than any of them takes.
CUresult copy_on_crowded_host(CUdeviceptr, const void*, size_t bytes, CUstream) {
  const bool late = ++copies % 16 >= 6;
  now_ns += time_of(bytes) + kNsPerCopy + (late ? 4'000'000 + copies % 11 * 300'000 : 0);
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, MostTriesBeingLateIsNoSlowLink) {
  for (const uint64_t first : {0u, 6u, 9u}) {
    copies = first;
    TimedLink device(&copy_on_crowded_host);
    const double fastest = kChunk * 1e9 / static_cast<double>(kNsPerChunk + kNsPerCopy);
    EXPECT_NEAR(static_cast<double>(measure_link_rates(device.memory).h2d_bytes_per_s), fastest, fastest / 10);
  }
}

// A chunk takes 2 s, both ways ten of them 20 s and more.
CUresult copy_on_slow_link(CUdeviceptr, const void*, size_t bytes, CUstream) {
  now_ns += 8000 * time_of(bytes);
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, ASlowLinkIsMeasuredWithFewBytes) {
  static uint64_t to_host_ns = 0;
  to_host_ns = 0;
  TimedLink device(&copy_on_slow_link);
  const_cast<DriverTable&>(reprise::driver()).cuMemcpyDtoHAsync = [](void*, CUdeviceptr, size_t bytes, CUstream) {
    now_ns += 8000 * time_of(bytes);
    to_host_ns += 8000 * time_of(bytes);
    return CUDA_SUCCESS;
  };
  const LinkRates rates = measure_link_rates(device.memory);
  EXPECT_NEAR(static_cast<double>(rates.h2d_bytes_per_s), kChunk * 0.5, kChunk * 0.01);
  EXPECT_NEAR(static_cast<double>(rates.d2h_bytes_per_s), kChunk * 0.5, kChunk * 0.01);
  EXPECT_LT(now_ns - to_host_ns, 1'000'000'000u);
  EXPECT_LT(to_host_ns, 1'000'000'000u);
}

// The host is late with each copy until the other direction's turn, and then no more.
bool late = false;
CUresult copy_on_host_late_at_first(CUdeviceptr, const void*, size_t bytes, CUstream) {
  now_ns += time_of(bytes) + (late ? 4'000'000 : 0);
  return CUDA_SUCCESS;
}

TEST(LinkRatesTest, ADirectionThatSeemsMuchSlowerThanTheOtherIsMeasuredAgain) {
  late = true;
  TimedLink device(&copy_on_host_late_at_first);
  auto& table = const_cast<DriverTable&>(reprise::driver());
  table.cuMemcpyDtoHAsync = [](void*, CUdeviceptr, size_t bytes, CUstream) {
    late = false;
    now_ns += time_of(bytes);
    return CUDA_SUCCESS;
  };
  const LinkRates rates = measure_link_rates(device.memory);
  EXPECT_NEAR(static_cast<double>(rates.d2h_bytes_per_s), kChunk * 4000.0, kChunk * 40.0);
  EXPECT_NEAR(static_cast<double>(rates.h2d_bytes_per_s), kChunk * 4000.0, kChunk * 40.0);
}

}  // namespace
}  // namespace reprise::replay

// The modelled clock of the simulated device, as CMakeLists.txt sets it for this process: 1 GB a second of memory, 2 GB
// a second of each link, 10 us a launch, 80 us for 2 MiB mapped, and times of some kernels. What is checked are times
// by that clock, which must be the same whatever else the machine does: alone, and beside threads that keep it busy.
#include "preload/driver/sim_abi.h"
#include "tools/device/tests/driver.h"

#define SIM(name) (reinterpret_cast<decltype(&::name)>(::reprise::sim_test::symbol(#name)))

namespace reprise::sim_test {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kLaunch = 10'000;
constexpr uint64_t kHeadStart = 150 * kMillisecond;  // `empty` takes it: meanwhile all that follows is issued

// Keeps every processor busy twice.
class Load {
 public:
  Load() {
    for (unsigned i = 0; i < 2 * std::max(2u, std::thread::hardware_concurrency()); ++i) {
      threads_.emplace_back([this] {
        while (!ended_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~Load() {
    ended_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

class Clock : public DriverTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    for (CUstream* stream : {&first_, &second_}) ASSERT_CU(CU(cuStreamCreate)(stream, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(CU(cuMemHostAlloc)(&pinned_, 32u << 20, 0));
    SIM(repriseSimActivityEnable)(1);
    records();
    if (GetParam()) load_ = std::make_unique<Load>();
  }
  void TearDown() override {
    load_.reset();
    SIM(repriseSimActivityEnable)(0);
    CU(cuMemFreeHost)(pinned_);
    DriverTest::TearDown();
  }

  RepriseSimStats stats() {
    RepriseSimStats now = {};
    SIM(repriseSimGetStats)(0, &now);
    return now;
  }
  // Those since the last time, in the order of their beginnings.
  std::vector<RepriseSimActivity> records() {
    std::vector<RepriseSimActivity> all(4096);
    all.resize(SIM(repriseSimActivityRead)(all.data(), static_cast<unsigned>(all.size())));
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    return all;
  }
  // What the thread is behind the clock with from before is less than this.
  void catch_up() {
    ASSERT_CU(launch("empty", {}, first_));
    ASSERT_CU(CU(cuStreamSynchronize)(first_));
    records();
  }
  static uint64_t length(const RepriseSimActivity& record) { return record.end_ns - record.start_ns; }
  CUevent event() {
    CUevent made = nullptr;
    EXPECT_CU(CU(cuEventCreate)(&made, 0));
    return made;
  }
  CUevent recorded(CUstream stream) {
    CUevent made = event();
    EXPECT_CU(CU(cuEventRecord)(made, stream));
    return made;
  }
  static double milliseconds(CUevent from, CUevent to) {
    float passed = -1;
    EXPECT_CU(CU(cuEventElapsedTime)(&passed, from, to));
    return static_cast<double>(passed);
  }

  CUstream first_ = nullptr;
  CUstream second_ = nullptr;
  void* pinned_ = nullptr;
  std::unique_ptr<Load> load_;
};
INSTANTIATE_TEST_SUITE_P(Machine, Clock, testing::Bool(),
                         [](const auto& parameter) { return parameter.param ? "busy" : "idle"; });

TEST_P(Clock, AKernelTakesTheBytesOfItsOperandsOverTheRate) {
  const CUdeviceptr large = allocate(5'000'000), small = allocate(1'000'000);
  ASSERT_CU(add(large, 1, 1, first_));
  ASSERT_CU(add(small + 400, 1, 1, first_));
  CUdeviceptr words[2] = {large, large + 64};  // one allocation, named twice
  ASSERT_CU(launch("hashed_pair", {&words[0], &words[1]}, first_));
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  const auto seen = records();
  ASSERT_EQ(3u, seen.size());
  EXPECT_EQ(5 * kMillisecond + kLaunch, length(seen[0]));
  EXPECT_EQ(1 * kMillisecond + kLaunch, length(seen[1]));
  EXPECT_EQ(5 * kMillisecond + kLaunch, length(seen[2]));
}

TEST_P(Clock, ARecordedTimeWins) {
  const CUdeviceptr memory = allocate(5'000'000);
  CUdeviceptr to = memory;
  int value = 1;
  ASSERT_CU(launch("store", {&to, &value}, first_));
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  const auto seen = records();
  ASSERT_EQ(1u, seen.size());
  EXPECT_EQ(3 * kMillisecond, length(seen[0]));
}

TEST_P(Clock, CopiesAndMemsetsTakeTheirBytesOverTheirRates) {
  const CUdeviceptr memory = allocate(4'000'000), other = allocate(4'000'000);
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0, 4'000'000, first_));
  ASSERT_CU(CU(cuMemsetD32Async)(memory, 0, 500'000, first_));
  ASSERT_CU(CU(cuMemcpyDtoDAsync)(other, memory, 4'000'000, first_));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(memory, pinned_, 4'000'000, first_));
  ASSERT_CU(CU(cuMemcpyDtoHAsync)(pinned_, memory, 2'000'000, first_));
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  const auto seen = records();
  ASSERT_EQ(5u, seen.size());
  const uint64_t expected[] = {4, 2, 8, 2, 1};
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(expected[i] * kMillisecond, length(seen[i])) << i;
}

// As long as there is work, one begins when the one before it ends: no thread's waking up adds to it.
TEST_P(Clock, AChainOfShortKernelsTakesTheirSum) {
  const CUdeviceptr memory = allocate(190'000);
  ASSERT_CU(launch("empty", {}, first_));
  const CUevent begin = recorded(first_);
  for (int i = 0; i < 200; ++i) ASSERT_CU(add(memory, 1, 1, first_));
  const CUevent end = recorded(first_);
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  EXPECT_NEAR(40.0, milliseconds(begin, end), 0.05 * 40);
  const auto seen = records();
  ASSERT_EQ(201u, seen.size());
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(200'000u, length(seen[i]));
    EXPECT_EQ(seen[i - 1].end_ns, seen[i].start_ns) << i;
  }
}

// ... nor where the program waits for each: what it is late with lies between two kernels, and is little. Now and then
// the thread sleeps for a lock whose owner does not run, which no clock can tell from a program that sleeps; so the
// gaps count one by one, and not their sum.
TEST_P(Clock, WaitingForEachKernelAddsLittle) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the program's own calls between two kernels, which count, take several times as long";
#endif
  const CUdeviceptr memory = allocate(1'990'000);
  catch_up();
  for (int i = 0; i < 50; ++i) {
    ASSERT_CU(add(memory, 1, 1, first_));
    ASSERT_CU(CU(cuStreamSynchronize)(first_));
  }
  const auto now = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  const auto seen = records();
  ASSERT_EQ(50u, seen.size());
  std::vector<uint64_t> gaps;
  for (size_t i = 1; i < seen.size(); ++i) {
    EXPECT_EQ(2 * kMillisecond, length(seen[i]));
    gaps.push_back(seen[i].start_ns - seen[i - 1].end_ns);
  }
  std::sort(gaps.begin(), gaps.end());
  EXPECT_LT(gaps[gaps.size() * 3 / 4], kMillisecond / 25);  // some 70 us where waking up counts
  EXPECT_GE(now, seen.back().end_ns);                       // the clock is never ahead
}

// A kernel whose twin takes far longer than it should ends late, by the clock; what follows catches up.
TEST_P(Clock, WhatTheHostIsLateWithIsCaughtUp) {
  const CUdeviceptr memory = allocate(990'000);
  const RepriseSimStats before = stats();
  {
    Gate gate;
    int* flag = gate.flag();
    ASSERT_CU(launch("hold", {&flag}, first_));
    for (int i = 0; i < 60; ++i) ASSERT_CU(add(memory, 1, 1, first_));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  const auto seen = records();
  ASSERT_EQ(61u, seen.size());
  EXPECT_EQ(kLaunch, length(seen[0]));
  for (size_t i = 2; i < seen.size(); ++i) EXPECT_LT(seen[i].start_ns - seen[i - 1].end_ns, 30 * kMillisecond) << i;
  EXPECT_LT(seen.back().end_ns - seen.front().start_ns, 85 * kMillisecond);  // one after the other: 90
  const RepriseSimStats after = stats();
  EXPECT_GT(after.late_operations, before.late_operations);
  EXPECT_GE(after.late_ns, 29 * kMillisecond);
  EXPECT_EQ(60 * kMillisecond + kLaunch, after.modelled_ns - before.modelled_ns);
  EXPECT_GT(after.host_ns, before.host_ns);
}

TEST_P(Clock, WhatWaitsForAnEventBeginsWithIt) {
  const CUdeviceptr memory = allocate(7'990'000);
  ASSERT_CU(launch("empty", {}, first_));
  const CUevent begin = recorded(first_);
  ASSERT_CU(add(memory, 1, 1, first_));
  const CUevent middle = recorded(first_);
  ASSERT_CU(CU(cuStreamWaitEvent)(second_, middle, 0));
  ASSERT_CU(CU(cuMemsetD8Async)(memory, 0, 2'000'000, second_));
  const CUevent end = recorded(second_);
  ASSERT_CU(CU(cuStreamSynchronize)(second_));
  const auto seen = records();
  ASSERT_EQ(3u, seen.size());
  EXPECT_EQ(kHeadStart, length(seen[0]));
  EXPECT_EQ(seen[1].end_ns, seen[2].start_ns);
  EXPECT_NEAR(8.0, milliseconds(begin, middle), 1e-3);
  EXPECT_NEAR(2.0, milliseconds(middle, end), 1e-3);
}

TEST_P(Clock, KernelsAndCopiesOverlap) {
  const CUdeviceptr memory = allocate(19'990'000), other = allocate(20'000'000);
  ASSERT_CU(launch("empty", {}, first_));
  const CUevent begin = recorded(first_);
  ASSERT_CU(CU(cuStreamWaitEvent)(second_, begin, 0));
  ASSERT_CU(add(memory, 1, 1, first_));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(other, pinned_, 20'000'000, second_));
  ASSERT_CU(CU(cuMemcpyHtoDAsync)(other, pinned_, 20'000'000, second_));
  ASSERT_CU(CU(cuCtxSynchronize)());
  const auto seen = records();
  ASSERT_EQ(4u, seen.size());
  EXPECT_EQ(seen[1].start_ns, seen[2].start_ns);
  const auto& kernel = seen[1].engine == 0 ? seen[1] : seen[2];
  EXPECT_EQ(20 * kMillisecond, length(kernel));
  EXPECT_EQ(kernel.end_ns, seen[3].end_ns);
}

TEST_P(Clock, TwoStreamsShareTheEngineOfKernels) {
  const CUdeviceptr memory = allocate(4'990'000);
  ASSERT_CU(launch("empty", {}, first_));
  const CUevent begin = recorded(first_);
  ASSERT_CU(CU(cuStreamWaitEvent)(second_, begin, 0));
  for (int i = 0; i < 4; ++i) ASSERT_CU(add(memory, 1, 1, i % 2 == 0 ? first_ : second_));
  ASSERT_CU(CU(cuCtxSynchronize)());
  const auto seen = records();
  ASSERT_EQ(5u, seen.size());
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i - 1].end_ns, seen[i].start_ns) << i;
}

TEST_P(Clock, NodesOfAGraphTakeTheirTimes) {
  const CUdeviceptr memory = allocate(990'000);
  ASSERT_CU(CU(cuStreamBeginCapture)(first_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 3; ++i) ASSERT_CU(add(memory, 1, 1, first_));
  CUgraph graph = nullptr;
  ASSERT_CU(CU(cuStreamEndCapture)(first_, &graph));
  CUgraphExec exec = nullptr;
  ASSERT_CU(CU(cuGraphInstantiate)(&exec, graph, 0));
  ASSERT_CU(CU(cuGraphLaunch)(exec, first_));
  ASSERT_CU(CU(cuStreamSynchronize)(first_));
  const auto seen = records();
  ASSERT_EQ(3u, seen.size());
  EXPECT_EQ(3 * kMillisecond, seen[2].end_ns - seen[0].start_ns);
}

// Mapping costs the thread its time, and no more for being short: 80 us a chunk, 400 of them.
TEST_P(Clock, MappingTakesItsTime) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "what is between the calls takes as long as they under ThreadSanitizer";
#endif
  constexpr size_t kChunk = 2u << 20;
  constexpr int kChunks = 400;
  constexpr int kAttempts = 12;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle chunk = 0;
  CUdeviceptr base = 0;
  ASSERT_CU(CU(cuMemCreate)(&chunk, kChunk, &properties, 0));
  ASSERT_CU(CU(cuMemAddressReserve)(&base, kChunks * kChunk, 0, 0, 0));
  // What is between the calls is the host's, which other work makes longer and nothing shorter.
  float least = std::numeric_limits<float>::max();
  for (int attempt = 0; attempt < kAttempts && least > 21.8F; ++attempt) {
    catch_up();
    const CUevent begin = recorded(first_);
    for (size_t i = 0; i < kChunks; ++i) {
      ASSERT_CU(CU(cuMemMap)(base + i * kChunk, kChunk, 0, chunk, 0));
      ASSERT_CU(CU(cuMemSetAccess)(base + i * kChunk, kChunk, &access, 1));
    }
    const CUevent end = recorded(first_);
    ASSERT_CU(CU(cuStreamSynchronize)(first_));
    ASSERT_CU(CU(cuMemUnmap)(base, kChunks * kChunk));
    least = std::min(least, static_cast<float>(milliseconds(begin, end)));
  }
  EXPECT_NEAR(19.8, least, 2.0) << "400 times 62 % of 80 us: they are unmapped later";
}

}  // namespace
}  // namespace reprise::sim_test

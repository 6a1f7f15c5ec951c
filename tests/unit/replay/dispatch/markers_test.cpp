// The plan executor's markers: behind few ops, and where they show what the device waits for.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "tests/unit/replay/dispatch/planned_device.h"

namespace reprise::replay {
namespace {

class MarkersTest : public PlannedDevice {
 protected:
  static constexpr uint32_t kSteps = 43;
  MarkersTest() : PlannedDevice(PlanBuilder().line(kSteps)) {}
  // Issues an iteration while the device stands still.
  void issue(uint64_t iteration) {
    device_.driver.clear();
    for (uint32_t call = 0; call < index_.plan.calls.size(); ++call) submit(call, iteration);
    while (executor_.step()) {
    }
  }
  Lanes& lanes_ = device_.memory.lanes;
  const LaneIndex lane_ = lanes_.lane_of(stream_, device_.context);
};

TEST_F(MarkersTest, AreFewWhereNothingWaits) {
  iterate(0);
  issue(1);
  EXPECT_EQ(log_.size(), 2 * (kSteps + 1)) << "all is issued";
  const uint64_t markers = device_.driver.count("cuEventRecord");
  EXPECT_GE(markers, kSteps / 8);
  EXPECT_LE(markers, kSteps / 8 + 2) << "of one op that the offload waits for, and every eighth";
  settle();
  EXPECT_EQ(lanes_[lane_].completed, lanes_[lane_].issued) << "the end of a lane is seen";
  EXPECT_LE(device_.driver.count("cuEventRecord"), kSteps / 8 + 7) << "the copies have theirs";
  EXPECT_TRUE(executor_.active());
}

TEST_F(MarkersTest, StandBehindWhatATransferWaitsFor) {
  iterate(0);
  issue(1);
  const CUstream digests = lanes_.stream(Lanes::kDigests);  // what leaves again is compared first
  EXPECT_TRUE(device_.driver.step(stream_));                // the use; its event is next
  EXPECT_FALSE(device_.driver.idle_but(digests));
  EXPECT_TRUE(device_.driver.step(stream_));
  while (executor_.step()) {
  }
  uint64_t compared = 0;
  while (device_.driver.step(digests)) ++compared;
  EXPECT_GT(compared, 1u) << "no step stands before the comparison";
  EXPECT_LT(lanes_[lane_].completed + kSteps / 2, lanes_[lane_].issued);
}

// The copies stand still: a use that waits for the reload is the next of its stream, and steps stand behind it.
TEST_F(MarkersTest, ShowThatTheNextOpWaitsForATransferWhateverStandsBehindIt) {
  const std::string path = ::testing::TempDir() + "/reprise_held." + std::to_string(getpid());
  shared_.run_log.open(path.c_str());
  iterate(0);
  issue(1);
  for (uint32_t call = 0; call < index_.plan.calls.size(); ++call) submit(call, 2);
  bool moved = true;
  while (moved) {
    while (executor_.step()) {
    }
    moved = device_.driver.step(stream_) || device_.driver.step(lanes_.stream(Lanes::kDigests));
  }
  ASSERT_GT(lanes_[lane_].issued, lanes_[lane_].completed + 2) << "steps are issued behind the use";
  constexpr int kMilliseconds = 30;
  for (int i = 0; i < kMilliseconds; ++i) {
    executor_.step();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  iterate(3);
  std::ifstream file(path);
  std::string line;
  uint64_t stall_ns = 0;
  while (std::getline(file, line)) {
    const std::string key = "\"stall_ns\":";
    const size_t at = line.find(key);
    if (at != std::string::npos) stall_ns += std::stoull(line.substr(at + key.size()));
  }
  EXPECT_GE(stall_ns, (kMilliseconds - 1) * 1'000'000u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace reprise::replay

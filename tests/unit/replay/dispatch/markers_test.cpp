// The plan executor's markers: behind few ops, and where they show what the device waits for.
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
class StallTest : public MarkersTest {
 protected:
  StallTest() { shared_.run_log.open(path_.c_str()); }
  ~StallTest() override { std::remove(path_.c_str()); }

  void take_in() {
    while (executor_.step()) {
    }
  }
  // All but the copies.
  void compute() {
    bool moved = true;
    while (moved) {
      take_in();
      moved = device_.driver.step(stream_) || device_.driver.step(lanes_.stream(Lanes::kDigests));
    }
  }
  void wait() {
    for (int i = 0; i < kMilliseconds; ++i) {
      executor_.step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Of all iterations that have ended.
  uint64_t stall_ns() {
    std::ifstream file(path_);
    std::string line;
    uint64_t sum = 0;
    while (std::getline(file, line)) {
      const std::string key = "\"stall_ns\":";
      const size_t at = line.find(key);
      if (at != std::string::npos) sum += std::stoull(line.substr(at + key.size()));
    }
    return sum;
  }

  static constexpr int kMilliseconds = 30;
  const std::string path_ = ::testing::TempDir() + "/reprise_held." + std::to_string(getpid());
};

TEST_F(StallTest, IsSeenWhateverStandsBehindTheOpThatWaits) {
  iterate(0);
  issue(1);
  for (uint32_t call = 0; call < index_.plan.calls.size(); ++call) submit(call, 2);
  compute();
  ASSERT_GT(lanes_[lane_].issued, lanes_[lane_].completed + 2) << "steps are issued behind the use";
  wait();
  iterate(3);
  EXPECT_GE(stall_ns(), (kMilliseconds - 1) * 1'000'000u);
}

// The step and the use are issued at once: nothing else marks the step's end.
TEST_F(StallTest, IsSeenWhereTheOpBeforeHasJustBeenIssued) {
  iterate(0);
  device_.driver.clear();
  const auto calls = static_cast<uint32_t>(index_.plan.calls.size());
  for (uint32_t call = 0; call + 1 < calls; ++call) submit(call, 1);
  compute();
  submit(calls - 1, 1);
  for (uint32_t call = 0; call < calls; ++call) submit(call, 2);
  executor_.step();
  ASSERT_GT(lanes_[lane_].issued, lanes_[lane_].completed + 2) << "steps are issued behind the use";
  compute();
  wait();
  iterate(3);
  EXPECT_GE(stall_ns(), (kMilliseconds - 1) * 1'000'000u);
}

// All is issued, and the program calls nothing for now.
TEST_F(StallTest, IsLookedAtUntilNothingIsHeld) {
  iterate(0);
  issue(1);
  for (uint32_t call = 0; call < index_.plan.calls.size(); ++call) submit(call, 2);
  compute();
  EXPECT_FALSE(executor_.idle());
  settle();
  EXPECT_TRUE(executor_.idle());
}

}  // namespace
}  // namespace reprise::replay

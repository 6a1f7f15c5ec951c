// Staged bytes stay until the copy that reads them is complete, and events until the work that names them was issued.
#include "replay/queue/staging.h"

#include "replay/queue/events.h"
#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class StagingTest : public ::testing::Test {
 protected:
  StagingTest() { staging_.open(1024); }
  uint64_t stage(char byte, uint64_t bytes) {
    uint64_t token = 0;
    const std::string source(bytes, byte);
    EXPECT_TRUE(staging_.stage(source.data(), bytes, &token));
    return token;
  }
  bool fits(uint64_t bytes) {
    uint64_t token = 0;
    const std::string source(bytes, 'x');
    return staging_.stage(source.data(), bytes, &token);
  }

  testing::SmallDevice device_{4};
  Staging staging_;
  LaneIndex lane_ = device_.new_lane();
};

TEST_F(StagingTest, KeepsTheBytesWhateverBecomesOfTheSource) {
  std::string source = "the bytes";
  uint64_t token = 0;
  ASSERT_TRUE(staging_.stage(source.data(), source.size(), &token));
  source.assign(source.size(), '-');
  const uint64_t other = stage('b', 300);
  EXPECT_EQ(std::memcmp(staging_.data(token), "the bytes", 9), 0);
  EXPECT_EQ(static_cast<const char*>(staging_.data(other))[299], 'b');
}

TEST_F(StagingTest, BytesAreFreeWhenTheirCopyIsCompleteInOrder) {
  const uint64_t first = stage('a', 512), second = stage('b', 512);
  EXPECT_FALSE(fits(1));
  const LaneUse early = device_.work(lane_, [] {});
  device_.memory.lanes.mark(lane_);
  const LaneUse late = device_.work(lane_, [] {});
  device_.memory.lanes.mark(lane_);
  staging_.release(second, early);
  staging_.release(first, late);
  staging_.reclaim(device_.memory.lanes);
  EXPECT_FALSE(fits(1)) << "no copy is complete";
  device_.driver.step(device_.memory.lanes.stream(lane_));
  device_.driver.step(device_.memory.lanes.stream(lane_));
  device_.memory.lanes.poll();
  staging_.reclaim(device_.memory.lanes);
  EXPECT_FALSE(fits(1)) << "the oldest is not";
  device_.driver.run_all();
  device_.memory.lanes.poll();
  staging_.reclaim(device_.memory.lanes);
  EXPECT_TRUE(fits(1024));
}

TEST_F(StagingTest, WhatIsNotReleasedStays) {
  stage('a', 512);
  const uint64_t second = stage('b', 512);
  staging_.release(second, {lane_, 0});
  staging_.reclaim(device_.memory.lanes);
  EXPECT_FALSE(fits(1));
}

TEST_F(StagingTest, WithoutMemoryNothingIsStaged) {
  device_.driver.fail("cuMemHostAlloc", 1);
  Staging none;
  none.open(1024);
  uint64_t token = 0;
  EXPECT_FALSE(none.stage("x", 1, &token));
}

class EventsTest : public ::testing::Test {
 protected:
  CUevent event() {
    CUevent made = nullptr;
    driver().cuEventCreate(&made, 0);
    return made;
  }
  testing::FakeDriver driver_;
  Events events_;
};

TEST_F(EventsTest, ARecordIsPendingUntilAllOfThemAreIssued) {
  const CUevent used = event();
  EXPECT_FALSE(events_.record_pending(used));
  events_.deferred(used, Events::Role::wait);
  EXPECT_FALSE(events_.record_pending(used)) << "a wait is no record";
  events_.deferred(used, Events::Role::record);
  events_.deferred(used, Events::Role::record);
  events_.issued(used, Events::Role::record);
  EXPECT_TRUE(events_.record_pending(used));
  events_.issued(used, Events::Role::record);
  EXPECT_FALSE(events_.record_pending(used));
}

TEST_F(EventsTest, AnEventIsDestroyedAfterItsLastDeferredUse) {
  const CUevent used = event();
  events_.deferred(used, Events::Role::record);
  events_.deferred(used, Events::Role::wait);
  EXPECT_TRUE(events_.destroy_later(used));
  events_.issued(used, Events::Role::record);
  EXPECT_EQ(driver_.count("cuEventDestroy"), 0u);
  events_.issued(used, Events::Role::wait);
  EXPECT_EQ(driver_.count("cuEventDestroy"), 1u);
  EXPECT_FALSE(events_.destroy_later(event())) << "the driver destroys one that is in no entry";
  events_.issued(used, Events::Role::wait);
  EXPECT_EQ(driver_.count("cuEventDestroy"), 1u) << "once";
}

}  // namespace
}  // namespace reprise::replay

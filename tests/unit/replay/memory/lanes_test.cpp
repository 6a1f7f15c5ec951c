// Lanes on a fake driver: what a wait costs, what it waits for, and what is known to be complete.
#include "replay/memory/lanes/lanes.h"

#include <rapidcheck.h>

#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class LanesTest : public ::testing::Test {
 protected:
  ~LanesTest() override { EXPECT_EQ(device_.driver.violations, Calls{}); }

  LaneUse work(LaneIndex lane) {
    return device_.work(lane, [] {});
  }
  void run(LaneIndex lane) {
    while (device_.driver.step(lanes_.stream(lane))) {
    }
  }
  const Calls& calls() const { return device_.driver.calls(); }
  // Of a stream in another context, which is current afterwards, as when the program's work on it was issued.
  LaneIndex lane_elsewhere() {
    EXPECT_EQ(lanes_.enter(elsewhere_), CUDA_SUCCESS);
    return lanes_.lane_of(device_.driver.stream(), elsewhere_);
  }

  const CUcontext elsewhere_ = reinterpret_cast<CUcontext>(uint64_t{0xd0});
  testing::SmallDevice device_{4};
  Lanes& lanes_ = device_.memory.lanes;
  LaneIndex first_ = device_.new_lane();
  LaneIndex second_ = device_.new_lane();
};

TEST_F(LanesTest, AStreamIsOneLaneInEachContext) {
  const CUstream stream = device_.driver.stream();
  const LaneIndex lane = lanes_.lane_of(stream, device_.context);
  EXPECT_EQ(lanes_.lane_of(stream, device_.context), lane);
  const LaneIndex other = lanes_.lane_of(stream, reinterpret_cast<CUcontext>(uint64_t{0xd0}));
  EXPECT_NE(other, lane) << "the legacy stream of another context";
  EXPECT_NE(first_, Lanes::kToDevice);
  EXPECT_NE(first_, Lanes::kToHost);
}

TEST_F(LanesTest, WaitsThatNeedNothingCostNothing) {
  EXPECT_EQ(lanes_.wait_on(first_, work(first_)), CUDA_SUCCESS) << "a lane is in order by itself";
  EXPECT_EQ(lanes_.wait_on(second_, LaneUse{first_, 0}), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.wait_on(second_, LaneUses{}), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.host_wait(LaneUses{}), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{});
}

TEST_F(LanesTest, AWaitIsMadeOnce) {
  const LaneUse older = work(first_), newer = work(first_);
  EXPECT_EQ(lanes_.wait_on(second_, newer), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"}));
  device_.driver.clear();
  EXPECT_EQ(lanes_.wait_on(second_, newer), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.wait_on(second_, older), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{});
  EXPECT_EQ(lanes_.wait_on(device_.new_lane(), older), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{"cuStreamWaitEvent"}) << "the event is there already";
}

TEST_F(LanesTest, AMarkerStandsBehindTheLastWorkAlone) {
  EXPECT_EQ(lanes_.mark(first_), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{}) << "there is no work";
  const LaneUse use = work(first_);
  EXPECT_EQ(lanes_.mark(first_), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.mark(first_), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.count("cuEventRecord"), 1u);
  bool later = false;
  device_.work(first_, [&] { later = true; });
  EXPECT_EQ(lanes_.host_wait(testing::SmallDevice::uses_of(use)), CUDA_SUCCESS);
  EXPECT_FALSE(later) << "what comes after the marker is not waited for";
}

TEST_F(LanesTest, EventsAreUsedAgainWhenTheyAreComplete) {
  for (int i = 0; i < 5; ++i) {
    work(first_);
    EXPECT_EQ(lanes_.mark(first_), CUDA_SUCCESS);
    device_.driver.run_all();
    lanes_.poll();
  }
  EXPECT_EQ(device_.driver.count("cuEventCreate"), 1u);
  EXPECT_EQ(device_.driver.count("cuEventRecord"), 5u);
}

TEST_F(LanesTest, PollLearnsWhatIsComplete) {
  const LaneUse one = work(first_);
  lanes_.mark(first_);
  const LaneUse two = work(first_);
  lanes_.mark(first_);
  EXPECT_FALSE(lanes_.known_complete(one));
  device_.driver.step(lanes_.stream(first_));
  lanes_.poll();
  EXPECT_FALSE(lanes_.known_complete(one)) << "its event has not been reached";
  device_.driver.step(lanes_.stream(first_));
  lanes_.poll();
  EXPECT_TRUE(lanes_.known_complete(one));
  EXPECT_FALSE(lanes_.known_complete(two));
  run(first_);
  lanes_.poll();
  EXPECT_TRUE(lanes_.known_complete(two));
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS);
  device_.driver.clear();
  lanes_.poll();
  EXPECT_EQ(calls(), Calls{}) << "nothing is outstanding";
}

TEST_F(LanesTest, CompleteAsksTheDriver) {
  const LaneUses uses = testing::SmallDevice::uses_of(work(first_));
  EXPECT_FALSE(lanes_.complete(uses));
  run(first_);
  EXPECT_TRUE(lanes_.complete(uses));
  device_.driver.clear();
  EXPECT_TRUE(lanes_.complete(uses));
  EXPECT_EQ(calls(), Calls{});
}

TEST_F(LanesTest, ABrokenContextIsKeptAndNothingIsWaitedForAnyMore) {
  const LaneUse use = work(first_);
  lanes_.mark(first_);
  device_.driver.fail("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  lanes_.poll();
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(lanes_.known_complete(use));
  work(first_);
  lanes_.mark(first_);
  device_.driver.fail("cuEventQuery", 1, CUDA_ERROR_LAUNCH_FAILED);
  lanes_.poll();
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_ILLEGAL_ADDRESS) << "the first one";
}

TEST_F(LanesTest, ABrokenContextIsKnownWhereNoMarkerCanBeMade) {
  const LaneUse use = work(first_);
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(lanes_.complete(use));
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS) << "the next question may succeed";
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_FALSE(lanes_.complete(use));
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(LanesTest, AQuestionThatFailsSaysNothingOfTheWork) {
  bool ran = false;
  const LaneUse use = device_.work(first_, [&] { ran = true; });
  lanes_.mark(first_);
  device_.driver.fail("cuEventQuery", 1, CUDA_ERROR_INVALID_VALUE);
  lanes_.poll();
  EXPECT_EQ(lanes_.known_complete(use), ran);
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS);
  work(first_);
  lanes_.mark(first_);
  device_.driver.fail("cuEventQuery", 1, CUDA_ERROR_INVALID_VALUE);
  device_.driver.fail("cuEventSynchronize", 1, CUDA_ERROR_INVALID_VALUE);
  lanes_.poll();
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_LAUNCH_FAILED) << "nothing tells any more";
  run(first_);
}

// Who counts on a marker looks at what poll() learns: without one he would look for good.
// A kernel that waits for good: what asks the driver for the end of anything would wait with it.
TEST_F(LanesTest, NothingIsWaitedForOnceTheDeviceWillNeverBeDone) {
  const LaneUse use = work(first_);
  EXPECT_EQ(lanes_.mark(first_), CUDA_SUCCESS);
  device_.driver.clear();
  lanes_.give_up(CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_TRUE(lanes_.given_up());
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_TRUE(lanes_.known_complete(use));
  const LaneUse later = work(second_);
  LaneUses uses;
  uses.add(later.lane, later.position);
  EXPECT_EQ(lanes_.host_wait(uses), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(lanes_.mark(second_), CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(lanes_.synchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
  lanes_.poll();
  EXPECT_TRUE(lanes_.known_complete(later));
  EXPECT_EQ(calls(), Calls{}) << "the driver is asked nothing";
  run(first_);
  run(second_);
}

TEST_F(LanesTest, PollMakesTheMarkerThatWasRefused) {
  const LaneUse use = work(first_);
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(lanes_.mark(first_), CUDA_ERROR_INVALID_VALUE);
  lanes_.poll();
  EXPECT_FALSE(lanes_.known_complete(use));
  run(first_);
  lanes_.poll();
  EXPECT_TRUE(lanes_.known_complete(use));
  device_.driver.clear();
  work(first_);
  lanes_.poll();
  EXPECT_EQ(calls(), Calls{}) << "work of which nobody asked for a marker owes none";
}

TEST_F(LanesTest, PollWaitsWhereNoMarkerIsEverMade) {
  bool ran = false;
  const LaneUse use = device_.work(first_, [&] { ran = true; });
  std::atomic<int> open{0};
  lanes_.watch_captures(&open);
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(lanes_.mark(first_), CUDA_ERROR_INVALID_VALUE);
  open = 1;
  lanes_.poll();
  EXPECT_EQ(device_.driver.count("cuEventRecord"), 1u) << "the stream may be captured now";
  open = 0;
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_INVALID_VALUE);
  device_.driver.fail("cuEventRecord", 2, CUDA_ERROR_INVALID_VALUE);
  lanes_.poll();
  EXPECT_EQ(calls().back(), "cuCtxSynchronize");
  EXPECT_TRUE(lanes_.known_complete(use));
  EXPECT_TRUE(ran);
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS);
}

TEST_F(LanesTest, ARefusedCallIsAnsweredAndTheWaitIsMadeTheNextTime) {
  const LaneUse use = work(first_);
  for (const char* function : {"cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"}) {
    device_.driver.fail(function, 1, CUDA_ERROR_UNKNOWN);
    EXPECT_EQ(lanes_.wait_on(second_, use), CUDA_ERROR_UNKNOWN) << function;
  }
  EXPECT_EQ(device_.driver.count("cuEventCreate"), 2u) << "an event that could not be recorded is kept";
  EXPECT_EQ(lanes_.wait_on(second_, use), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.count("cuStreamWaitEvent"), 2u);
  device_.driver.fail("cuEventSynchronize", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(lanes_.host_wait(testing::SmallDevice::uses_of(use)), CUDA_ERROR_UNKNOWN);
  EXPECT_FALSE(lanes_.known_complete(use));
  device_.driver.fail("cuCtxSynchronize", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(lanes_.synchronize(), CUDA_ERROR_UNKNOWN);
  EXPECT_FALSE(lanes_.known_complete(use));
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS) << "the next plan is not refused for it";
  device_.driver.fail("cuCtxSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(lanes_.synchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(lanes_.fault(), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_F(LanesTest, MoreLanesThanUsesHoldAreWaitedForAsAll) {
  LaneUses uses;
  for (size_t i = 0; i <= LaneUses::kMost; ++i) {
    const LaneUse use = work(device_.new_lane());
    uses.add(use.lane, use.position);
  }
  ASSERT_TRUE(uses.everything());
  EXPECT_FALSE(lanes_.complete(uses));
  EXPECT_EQ(lanes_.wait_on(first_, uses), CUDA_SUCCESS);
  EXPECT_EQ(calls().back(), "cuCtxSynchronize");
  EXPECT_TRUE(device_.driver.idle());
}

TEST_F(LanesTest, SynchronizeCompletesTheLanesOfAllContexts) {
  const LaneUse own = work(first_);
  const LaneIndex elsewhere = lane_elsewhere();
  const LaneUse other = work(elsewhere);
  EXPECT_EQ(lanes_.synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.known_complete(own));
  EXPECT_TRUE(lanes_.known_complete(other)) << "the driver synchronises one context, an event the other lane";
  EXPECT_TRUE(device_.driver.idle());
}

// An event on a captured stream would belong to the program's graph, and a wait for the context would end its capture.
TEST_F(LanesTest, WhileACaptureIsOpenNoEventIsOwedAndNoContextIsWaitedFor) {
  std::atomic<int> open{0};
  lanes_.watch_captures(&open);
  const LaneUse early = work(first_), other = work(second_);
  open = 1;
  EXPECT_EQ(lanes_.mark_all(), CUDA_SUCCESS);
  const LaneUse late = work(second_);
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);  // from here on both may capture
  device_.driver.fail("cuCtxSynchronize", 1, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const LaneUses everything = testing::SmallDevice::uses_of(early);
  EXPECT_EQ(lanes_.wait_on(Lanes::kToHost, early), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.wait_on(Lanes::kToHost, other), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.wait_on(Lanes::kToHost, late), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.host_wait(everything), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.known_complete(late));
  device_.driver.heal();
}

// It would end the program's capture. Who waits is told, and may try again later.
TEST_F(LanesTest, WhileACaptureIsOpenNoContextIsWaitedForInPlaceOfARefusedMarker) {
  std::atomic<int> open{0};
  lanes_.watch_captures(&open);
  const LaneUse use = work(first_);
  open = 1;
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(lanes_.synchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(device_.driver.count("cuCtxSynchronize"), 0u);
  EXPECT_FALSE(lanes_.known_complete(use));
  EXPECT_EQ(lanes_.fault(), CUDA_SUCCESS);
  open = 0;
  EXPECT_EQ(lanes_.synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.known_complete(use));
}

TEST_F(LanesTest, SynchronizeIsOfTheOwnContextWhicheverIsCurrent) {
  bool done = false;
  const LaneUse use = device_.work(first_, [&] { done = true; });
  lane_elsewhere();
  EXPECT_EQ(lanes_.synchronize(), CUDA_SUCCESS);
  EXPECT_TRUE(lanes_.known_complete(use));
  EXPECT_TRUE(done) << "known to be complete, and is not";
}

TEST_F(LanesTest, EventsAreRecordedInTheContextOfTheirStream) {
  const LaneIndex other = lane_elsewhere();
  for (int round = 0; round < 3; ++round) {
    for (const LaneIndex lane : {other, first_}) {
      const LaneUse use = work(lane);
      const LaneIndex waiter = lane == other ? first_ : other;
      EXPECT_EQ(lanes_.enter(lanes_[waiter].context), CUDA_SUCCESS) << "not that of the stream that is recorded on";
      EXPECT_EQ(lanes_.wait_on(waiter, use), CUDA_SUCCESS) << round;
      EXPECT_EQ(device_.driver.current, lanes_[waiter].context) << "a default stream is that of the current one";
      EXPECT_EQ(lanes_.host_wait(testing::SmallDevice::uses_of(use)), CUDA_SUCCESS);
    }
  }
  EXPECT_EQ(device_.driver.count("cuEventCreate"), 2u) << "one each, used again";
}

TEST_F(LanesTest, ADestroyedStreamCanStillBeWaitedFor) {
  const CUstream stream = lanes_.stream(first_);
  bool done = false;
  const LaneUse use = device_.work(first_, [&] { done = true; });
  EXPECT_EQ(lanes_.close(stream, device_.context), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuEventCreate", "cuEventRecord", "cuStreamDestroy"})) << "the mark comes first";
  EXPECT_EQ(lanes_.host_wait(testing::SmallDevice::uses_of(use)), CUDA_SUCCESS);
  EXPECT_TRUE(done);
}

TEST_F(LanesTest, ADestroyedStreamWithoutAMarkerIsWaitedForByTheContext) {
  const LaneUse use = work(first_);
  device_.driver.fail("cuEventRecord", 1, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(lanes_.close(lanes_.stream(first_), device_.context), CUDA_SUCCESS);
  EXPECT_EQ(lanes_.wait_on(second_, use), CUDA_SUCCESS);
  EXPECT_EQ(calls().back(), "cuCtxSynchronize");
  EXPECT_TRUE(lanes_.known_complete(use));
}

TEST_F(LanesTest, ARefusedDestructionKeepsTheLane) {
  const CUstream stream = lanes_.stream(first_);
  device_.driver.fail("cuStreamDestroy", 1, CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(lanes_.close(stream, device_.context), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(lanes_.lane_of(stream, device_.context), first_);
  EXPECT_EQ(lanes_.close(device_.driver.stream(), device_.context), CUDA_SUCCESS) << "one without a lane";
}

TEST_F(LanesTest, AnIdleClosedLaneIsUsedAgainAndItsPositionsGoOn) {
  const LaneUse before = work(first_);
  ASSERT_EQ(lanes_.close(lanes_.stream(first_), device_.context), CUDA_SUCCESS);
  EXPECT_NE(device_.new_lane(), first_) << "its work is not complete";
  device_.driver.run_all();
  EXPECT_NE(lane_elsewhere(), first_) << "of another context";
  lanes_.enter(device_.context);
  const LaneIndex again = device_.new_lane();
  EXPECT_EQ(again, first_);
  EXPECT_TRUE(lanes_.known_complete(before));
  EXPECT_GT(work(again).position, before.position);
}

TEST_F(LanesTest, ALaneThatIsUsedAgainWaitsAnew) {
  const LaneUse use = work(second_);
  ASSERT_EQ(lanes_.wait_on(first_, use), CUDA_SUCCESS);
  ASSERT_EQ(lanes_.close(lanes_.stream(first_), device_.context), CUDA_SUCCESS);
  const LaneIndex again = device_.new_lane();
  ASSERT_EQ(again, first_) << "nothing was issued on it";
  device_.driver.clear();
  EXPECT_EQ(lanes_.wait_on(again, use), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.count("cuStreamWaitEvent"), 1u) << "the wait was the old stream's";
}

// Work says when it runs. Whatever the order of calls, the device's progress and the refusals: work that was issued
// after a wait runs after what it waits for, and what is known to be complete has run.
TEST(LanesPropertyTest, NothingRunsBeforeWhatItWaitsFor) {
  EXPECT_TRUE(rc::check("waits hold and completion is true", [] {
    testing::SmallDevice device(4);
    Lanes& lanes = device.memory.lanes;
    std::vector<LaneIndex> open;
    std::map<LaneIndex, std::vector<LaneUse>> needs;  // of the next work on a lane
    std::map<LaneIndex, uint64_t> ran;
    std::vector<LaneUse> all;
    open.reserve(3);
    for (int i = 0; i < 3; ++i) open.push_back(device.new_lane());
    bool early = false;
    const int steps = testing::uniform(1, 120);
    for (int step = 0; step < steps; ++step) {
      static const char* const functions[] = {"cuEventRecord", "cuEventCreate", "cuStreamWaitEvent",
                                              "cuEventSynchronize", "cuStreamDestroy"};
      device.driver.heal();
      if (testing::one_in(8)) device.driver.fail(functions[testing::uniform(0, 5)], 1, CUDA_ERROR_UNKNOWN);
      const auto which = testing::uniform<size_t>(0, open.size());
      const LaneIndex lane = open[which];
      LaneUses uses;
      std::vector<LaneUse> chosen;
      for (int i = testing::uniform(1, 4); i > 0 && !all.empty(); --i) {
        chosen.push_back(testing::one_of(all));
        uses.add(chosen.back().lane, chosen.back().position);
      }
      switch (testing::uniform(0, 9)) {
        case 0:
        case 1:
        case 2:
          all.push_back({lane, lanes[lane].issued + 1});
          device.work(lane, [&, lane, position = all.back().position, before = needs[lane]] {
            for (const LaneUse& use : before) early = early || ran[use.lane] < use.position;
            ran[lane] = position;
          });
          break;
        case 3:
          lanes.mark(lane);
          break;
        case 4:
        case 5:
          if (lanes.wait_on(lane, uses) == CUDA_SUCCESS) {
            needs[lane].insert(needs[lane].end(), chosen.begin(), chosen.end());
          }
          break;
        case 6:
          if (lanes.host_wait(uses) == CUDA_SUCCESS) {
            for (const LaneUse& use : chosen) RC_ASSERT(ran[use.lane] >= use.position);
          } else if (lanes.complete(uses)) {
            for (const LaneUse& use : chosen) RC_ASSERT(ran[use.lane] >= use.position);
          }
          break;
        case 7:
          if (lanes.close(lanes.stream(lane), device.context) == CUDA_SUCCESS) {
            open[which] = device.new_lane();
            needs[open[which]].clear();
          }
          break;
        case 8: {
          const std::vector<CUstream> streams = device.driver.streams();
          for (int i = testing::uniform(0, 6); i > 0; --i) device.driver.step(testing::one_of(streams));
          lanes.poll();
          break;
        }
      }
      for (const LaneUse& use : all) {
        if (lanes.known_complete(use)) RC_ASSERT(ran[use.lane] >= use.position);
      }
    }
    device.driver.run_all();
    RC_ASSERT(!early);
    RC_ASSERT(device.driver.violations.empty());
  }));
}

}  // namespace
}  // namespace reprise::replay

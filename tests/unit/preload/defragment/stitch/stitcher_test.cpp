// The states of BestFit one by one: what is split, stitched, reused, and what that costs.
#include "preload/defragment/stitch/stitcher.h"

#include "tests/support/test.h"
#include "tests/unit/preload/defragment/stitch/model_memory.h"

namespace reprise::stitch {
namespace {

class StitcherTest : public ::testing::Test {
 protected:
  void open(uint32_t chunks, uint32_t stitched_from = 1, uint32_t stitched_blocks = 64, uint32_t mapped = 10000) {
    memory.capacity = chunks;
    ASSERT_TRUE(stitcher.open(&memory, {ModelMemory::kChunk, chunks, stitched_from, mapped, stitched_blocks}));
  }
  Grant take(uint64_t chunks, Tag tag = kIdle) {
    Grant grant;
    last = stitcher.allocate(chunks * ModelMemory::kChunk, tag, &grant);
    if (last == Result::ok) memory.taken(grant, chunks, tag);
    return grant;
  }
  void give(const Grant& grant, uint64_t chunks, Tag tag = kIdle) {
    memory.given_back(grant.address, chunks, tag);
    EXPECT_TRUE(stitcher.release(grant.address, tag));
  }
  void TearDown() override {
    EXPECT_EQ(memory.broken, "");
    const char* rule = stitcher.check();
    EXPECT_EQ(rule, nullptr) << rule;
  }
  ModelMemory memory;
  Stitcher stitcher;
  Result last = Result::ok;
};

TEST_F(StitcherTest, NewMemoryWhereThereIsNone) {
  open(10);
  EXPECT_EQ(take(4).state, State::insufficient);
  EXPECT_EQ(stitcher.stats().stitches, 0u);
  EXPECT_EQ(memory.existing(), 4u);
}

TEST_F(StitcherTest, TheSameSizeAgainCostsNothing) {
  open(10);
  const Grant first = take(4);
  give(first, 4);
  const Grant second = take(4);
  EXPECT_EQ(second.state, State::exact);
  EXPECT_EQ(second.address, first.address);
  EXPECT_EQ(memory.maps, 1u);
}

TEST_F(StitcherTest, ALargerPieceIsSplitWhereItLies) {
  open(10);
  const Grant whole = take(10);
  give(whole, 10);
  const Grant part = take(4);
  EXPECT_EQ(part.state, State::single);
  EXPECT_EQ(part.address, whole.address);
  EXPECT_EQ(take(6).state, State::exact);
  EXPECT_EQ(memory.maps, 1u);
}

TEST_F(StitcherTest, WhatWasSplitComesBackWhole) {
  open(10);
  const Grant whole = take(10);
  give(whole, 10);
  const Grant left = take(4), right = take(6);
  give(left, 4);
  EXPECT_EQ(take(10).address, 0u);  // the right part is busy, and so is the whole
  EXPECT_EQ(last, Result::out_of_memory);
  give(right, 6);
  const Grant again = take(10);
  EXPECT_EQ(again.state, State::exact);
  EXPECT_EQ(again.address, whole.address);
  EXPECT_EQ(memory.maps, 1u);
}

TEST_F(StitcherTest, HolesBecomeOneBlock) {
  open(12);
  Grant parts[6];
  for (Grant& part : parts) part = take(2);
  for (const int hole : {0, 2, 4}) give(parts[hole], 2);
  const Grant wide = take(5);
  EXPECT_EQ(wide.state, State::multiple);
  EXPECT_EQ(stitcher.stats().stitches, 1u);
  EXPECT_EQ(stitcher.stats().splits, 1u);
  EXPECT_EQ(memory.existing(), 12u);
  EXPECT_EQ(take(1).state, State::exact);
  // The second time it is known.
  give(wide, 5);
  EXPECT_EQ(take(5).state, State::exact);
  EXPECT_EQ(stitcher.stats().stitches, 1u);
}

TEST_F(StitcherTest, ThePieceThatFitsTheRemainderBestIsTaken) {
  open(20);
  const Grant three = take(3), two = take(2), five = take(5);
  give(three, 3);
  give(two, 2);
  give(five, 5);
  EXPECT_EQ(take(7).state, State::multiple);
  EXPECT_EQ(stitcher.stats().splits, 0u);  // 5 and 2, not 5 and 3
}

TEST_F(StitcherTest, OnlyWhatIsMissingIsNew) {
  open(12);
  const Grant hole = take(3);
  take(2);
  give(hole, 3);
  EXPECT_EQ(take(10).state, State::insufficient);
  EXPECT_EQ(memory.existing(), 12u);
  EXPECT_EQ(stitcher.stats().stitches, 1u);
}

TEST_F(StitcherTest, ASeamIsBusyWhileAPieceOfItIs) {
  open(6);
  const Grant left = take(2), middle = take(2), right = take(2);
  give(left, 2);
  give(right, 2);
  const Grant wide = take(4);
  EXPECT_EQ(wide.state, State::multiple);
  give(wide, 4);
  take(2);
  give(middle, 2);
  EXPECT_EQ(take(4).state, State::multiple);  // not the old stitched block: one of its primitive blocks is taken
}

TEST_F(StitcherTest, BelowTheLimitNothingIsStitchedWhileThereIsMemory) {
  open(60, 4);
  take(40);
  Grant parts[4];
  for (Grant& part : parts) part = take(2);
  give(parts[0], 2);
  give(parts[2], 2);
  EXPECT_EQ(take(4).state, State::insufficient);
  EXPECT_EQ(stitcher.stats().stitches, 0u);
  EXPECT_EQ(memory.existing(), 52u);
  EXPECT_EQ(take(1).state, State::insufficient);  // nor split
  EXPECT_EQ(stitcher.stats().splits, 0u);
}

TEST_F(StitcherTest, BelowTheLimitIdleMemoryIsUsedBeforeItBecomesMuch) {
  open(60, 4);
  take(16);
  Grant parts[8];
  for (Grant& part : parts) part = take(2);
  for (const int hole : {0, 2, 4}) give(parts[hole], 2);
  EXPECT_EQ(take(3).state, State::insufficient);
  EXPECT_EQ(stitcher.stats().recycled_primitives, 2u);  // 6 idle chunks are more than an eighth of 26, and 2 are not
  EXPECT_EQ(memory.existing(), 32u);
}

TEST_F(StitcherTest, BelowTheLimitChunksAreReusedWhenTheDeviceIsFull) {
  open(8, 4);
  Grant parts[4];
  for (Grant& part : parts) part = take(2);
  give(parts[0], 2);
  give(parts[2], 2);
  EXPECT_EQ(take(4).state, State::insufficient);
  EXPECT_EQ(last, Result::ok);
  EXPECT_EQ(stitcher.stats().recycled_primitives, 2u);
  EXPECT_EQ(memory.existing(), 8u);
}

TEST_F(StitcherTest, EveryAllocationOfManyIsFoundAgain) {
  open(2000);
  std::vector<Grant> all(2000);
  for (Grant& one : all) one = take(1);
  for (size_t step = 0; step < all.size(); ++step) give(all[step * 1009 % all.size()], 1);
  EXPECT_EQ(stitcher.stats().live_bytes, 0u);
}

// The choice among equals must not depend on what happened before, or the same iteration goes another way each time.
TEST_F(StitcherTest, AnIterationThatRepeatsStopsStitching) {
  open(400);
  std::vector<Grant> kept(20);
  for (Grant& one : kept) one = take(3);
  uint64_t stitches = 0;
  for (int iteration = 0; iteration < 24; ++iteration) {
    if (iteration == 12) stitches = stitcher.stats().stitches;
    struct Part {
      Grant grant;
      uint64_t chunks;
    };
    std::vector<Part> live;
    uint32_t random = 1;
    for (int i = 0; i < 120; ++i) {
      random = random * 1664525 + 1013904223;
      const uint64_t chunks = 1 + (random >> 8) % 12 * (1 + (random >> 20) % 3);
      const size_t at = (random >> 12) % (live.size() + 1);
      if (at < live.size() && live.size() > 8) {
        give(live[at].grant, live[at].chunks);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        live.push_back({take(chunks), chunks});
      }
    }
    for (const Part& part : live) give(part.grant, part.chunks);
  }
  EXPECT_GT(stitches, 0u);
  EXPECT_EQ(stitcher.stats().stitches, stitches);
}

TEST_F(StitcherTest, OutOfMemoryLeavesEverythingAsItWas) {
  open(8);
  const Grant busy = take(5), idle = take(3);
  give(idle, 3);
  EXPECT_EQ(take(4).state, State::out_of_memory);
  EXPECT_EQ(last, Result::out_of_memory);
  EXPECT_EQ(take(3).state, State::exact);
  give(busy, 5);
}

TEST_F(StitcherTest, AFailureOfTheDeviceIsNotOutOfMemory) {
  open(8);
  memory.fails = true;
  take(4);
  EXPECT_EQ(last, Result::failed);
}

TEST_F(StitcherTest, NothingIsTooLargeOrZero) {
  open(8);
  Grant grant;
  EXPECT_EQ(stitcher.allocate(0, kIdle, &grant), Result::out_of_memory);
  EXPECT_EQ(stitcher.allocate(UINT64_MAX, kIdle, &grant), Result::out_of_memory);
  EXPECT_FALSE(stitcher.release(ModelMemory::kChunk, kIdle));
}

TEST_F(StitcherTest, TheLeastRecentlyUsedSeamGivesWay) {
  open(8, 1, 64, 8 + 8);
  Grant parts[4];
  for (Grant& part : parts) part = take(2);
  const auto stitched = [&](int a, int b) {
    give(parts[a], 2);
    give(parts[b], 2);
    const Grant grant = take(4);
    give(grant, 4);
    parts[a] = take(2);
    parts[b] = take(2);
    return grant.state;
  };
  EXPECT_EQ(stitched(0, 1), State::multiple);
  EXPECT_EQ(stitched(2, 3), State::multiple);
  EXPECT_EQ(stitched(0, 1), State::exact);
  EXPECT_EQ(stitcher.stats().stitch_frees, 0u);
  EXPECT_EQ(stitched(1, 3), State::multiple);  // no room: the stitched block of 2 and 3 goes
  EXPECT_EQ(stitcher.stats().stitch_frees, 1u);
  EXPECT_LE(memory.mapped(), 16u);
}

TEST_F(StitcherTest, AMappingThatTheDriverRefusesIsTriedAgainWithoutSeams) {
  open(8);
  memory.mappable = 12;
  Grant parts[4];
  for (Grant& part : parts) part = take(2);
  give(parts[0], 2);
  give(parts[1], 2);
  const Grant grant = take(4);
  give(grant, 4);
  parts[1] = take(2);
  give(parts[2], 2);
  EXPECT_EQ(take(4).state, State::multiple);
  EXPECT_EQ(last, Result::ok);
}

TEST_F(StitcherTest, ReuseWaitsForTheWorkOfOthers) {
  open(4);
  const Grant first = take(4, 1);
  give(first, 4, 1);
  const Grant same = take(4, 1);
  EXPECT_EQ(same.wait_count, 0u);
  give(same, 4, 1);
  const Grant other = take(4, 2);
  ASSERT_EQ(other.wait_count, 1u);
  EXPECT_EQ(other.waits[0], 1u);
  give(other, 4, kUnknownWork);
  const Grant unknown = take(4, kUnknownWork);
  EXPECT_TRUE(unknown.wait_for_all);
  give(unknown, 4, 3);
  memory.all_over();
  stitcher.settled(stitcher.mark());
  EXPECT_EQ(take(4, 2).wait_count, 0u);
}

TEST_F(StitcherTest, WhatIsFreedWhileSomebodyWaitsIsNotSettled) {
  open(4);
  const Grant before = take(2, 1), during = take(2, 1);
  give(before, 2, 1);
  const uint32_t mark = stitcher.mark();
  memory.all_over();
  give(during, 2, 1);
  stitcher.settled(mark);
  EXPECT_EQ(take(2, 2).wait_count + take(2, 2).wait_count, 1u);
}

TEST_F(StitcherTest, ABlockThatIsReadyGoesFirst) {
  open(8);
  const Grant pending = take(4, 1), ready = take(4, 2);
  give(ready, 4, 2);
  give(pending, 4, 1);
  const Grant again = take(4, 2);
  EXPECT_EQ(again.address, ready.address);
  EXPECT_EQ(again.wait_count, 0u);
}

TEST_F(StitcherTest, TrimGivesAllIdleMemoryBackOnceWorkIsOver) {
  open(8);
  take(2);
  const Grant idle = take(6, 1);
  give(idle, 6, 1);
  EXPECT_EQ(stitcher.trim(), 6 * ModelMemory::kChunk);
  EXPECT_EQ(memory.existing(), 2u);
  EXPECT_EQ(memory.mapped(), 2u);
  EXPECT_EQ(memory.ranges(), 1u);
  EXPECT_EQ(memory.settles, 1u);
}

TEST_F(StitcherTest, APartOfARangeGoesWhileTheOtherStays) {
  open(8);
  const Grant whole = take(8);
  give(whole, 8);
  take(3);
  EXPECT_EQ(stitcher.trim(), 5 * ModelMemory::kChunk);
  EXPECT_EQ(memory.mapped(), 3u);
}

}  // namespace
}  // namespace reprise::stitch

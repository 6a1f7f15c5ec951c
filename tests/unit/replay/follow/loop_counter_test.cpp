// How often a loop was passed through, whatever else the program did.
#include "replay/follow/loop_counter.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

LoopCounter counted(const std::vector<uint64_t>& loop, const std::vector<uint64_t>& words) {
  LoopCounter counter(loop);
  for (const uint64_t word : words) counter.add(word);
  return counter;
}

TEST(LoopCounter, CountsWholeIterations) {
  const std::vector<uint64_t> loop = {1, 2, 3, 4};
  EXPECT_EQ(counted(loop, {1, 2, 3, 4, 1, 2, 3, 4}).finished(), 2u);
  EXPECT_EQ(counted(loop, {3, 4, 1, 2, 3, 4}).finished(), 1u) << "entered in the middle";
  EXPECT_EQ(counted(loop, {1, 2, 1, 2, 3, 4}).finished(), 1u) << "the first one began anew";
  EXPECT_EQ(counted(loop, {1, 2, 3}).finished(), 0u);
  EXPECT_EQ(counted({}, {1, 2, 3}).finished(), 0u);
}

TEST(LoopCounter, FindsAnIterationThatBeginsWithinAnother) {
  EXPECT_EQ(counted({1, 1, 2}, {1, 1, 1, 1, 2}).finished(), 1u);
  EXPECT_EQ(counted({1, 2, 1, 3}, {1, 2, 1, 2, 1, 3, 1, 2, 1, 3}).finished(), 2u);
  EXPECT_EQ(counted({1, 1}, {1, 1, 1, 1, 1}).finished(), 2u) << "none lies over another";
}

TEST(LoopCounter, WhatIsLeftWhenItIsMostlyOverIsNotFinished) {
  const std::vector<uint64_t> loop = {1, 2, 3, 4};
  EXPECT_EQ(counted(loop, {1, 9}).unfinished(), 0u);
  EXPECT_EQ(counted(loop, {1, 2, 3, 9, 1, 2, 3, 4, 9}).unfinished(), 1u);
}

}  // namespace
}  // namespace reprise::replay

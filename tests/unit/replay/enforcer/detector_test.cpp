// The detector speaks up when two periods repeat, and keeps quiet otherwise.
#include "replay/enforcer/detector.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace reprise::replay {
namespace {

// Feeds `words`; the positions (from 1) at which it spoke.
std::vector<uint64_t> feed(Detector& detector, const std::vector<uint64_t>& words) {
  std::vector<uint64_t> spoke;
  for (const uint64_t word : words) {
    if (detector.add(word)) spoke.push_back(detector.calls());
  }
  return spoke;
}

std::vector<uint64_t> repeat(const std::vector<uint64_t>& period, int times) {
  std::vector<uint64_t> words;
  for (int i = 0; i < times; ++i) words.insert(words.end(), period.begin(), period.end());
  return words;
}

TEST(DetectorTest, FindsAPeriodAfterAPrologue) {
  Detector detector;
  std::vector<uint64_t> words = {900, 901, 902};
  const std::vector<uint64_t> period = {1, 2, 3, 4, 5, 6, 7};
  const auto more = repeat(period, 2);
  words.insert(words.end(), more.begin(), more.end());
  const auto spoke = feed(detector, words);
  ASSERT_FALSE(spoke.empty());
  EXPECT_EQ(spoke.front(), 3u + 14u);
  EXPECT_EQ(detector.period(), 7u);
}

TEST(DetectorTest, StartsAnew) {
  Detector detector;
  const std::vector<uint64_t> period = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_FALSE(feed(detector, repeat(period, 3)).empty());
  const uint64_t loop = detector.loop();
  detector.rejected();
  detector.restart(0);
  EXPECT_TRUE(feed(detector, {3, 4, 5, 6, 7, 1, 2}).empty()) << "what came before does not count";
  const auto spoke = feed(detector, {3, 4, 5, 6, 7, 1, 2});
  ASSERT_EQ(spoke.size(), 1u);
  EXPECT_EQ(detector.loop(), loop) << "the same loop, entered elsewhere";
  detector.restart(14);
  EXPECT_EQ(feed(detector, repeat(period, 3)).front(), spoke.front() + 14);
  EXPECT_FALSE(feed(detector, repeat({1, 2, 3, 4, 5, 6, 8}, 3)).empty());
  EXPECT_NE(detector.loop(), loop);
}

TEST(DetectorTest, FindsTheWholeIterationAroundEqualLayers) {
  // Eight equal layers between a head and a tail: the layers repeat, too, but after a rejection the iteration is found.
  std::vector<uint64_t> iteration = {100};
  for (int layer = 0; layer < 8; ++layer) iteration.insert(iteration.end(), {1, 2, 3});
  iteration.push_back(200);
  Detector detector;
  bool found = false;
  for (const uint64_t word : repeat(iteration, 12)) {
    if (!detector.add(word)) continue;
    if (detector.period() == iteration.size()) {
      found = true;
      break;
    }
    detector.rejected();
  }
  EXPECT_TRUE(found);
}

TEST(DetectorTest, WaitsTwiceAsLongAfterEveryRejection) {
  Detector detector;
  uint64_t last = 0;
  int asked = 0;
  for (const uint64_t word : repeat({1, 2, 3, 4, 5}, 400)) {
    if (!detector.add(word)) continue;
    EXPECT_GE(detector.calls(), 2 * last);
    last = detector.calls();
    ++asked;
    detector.rejected();
  }
  EXPECT_GT(asked, 3);
  EXPECT_LT(asked, 12);
}

TEST(DetectorTest, IsQuietWhenNothingRepeats) {
  Detector detector;
  uint64_t word = 1;
  for (int i = 0; i < 20000; ++i) {
    word = word * 6364136223846793005ull + 1442695040888963407ull;
    EXPECT_FALSE(detector.add(word));
  }
}

TEST(DetectorTest, FindsAnyPeriodOfDistinctCalls) {
  EXPECT_TRUE(rc::check("a period of distinct words is found at its second end", [] {
    const auto length = *rc::gen::inRange<uint64_t>(4, 200);
    const auto prologue = *rc::gen::inRange<uint64_t>(0, 50);
    std::vector<uint64_t> words;
    for (uint64_t i = 0; i < prologue; ++i) words.push_back(1'000'000 + i);
    for (uint64_t i = 0; i < 2 * length; ++i) words.push_back(i % length);
    Detector detector;
    const auto spoke = feed(detector, words);
    RC_ASSERT(!spoke.empty());
    RC_ASSERT(spoke.front() == prologue + 2 * length);
    RC_ASSERT(detector.period() == length);
  }));
}

}  // namespace
}  // namespace reprise::replay

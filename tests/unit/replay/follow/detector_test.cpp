// The detector speaks up when two periods repeat, and keeps quiet otherwise.
#include "replay/follow/detector.h"

#include <rapidcheck.h>

#include "tests/support/test.h"

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
  detector.rejected(true);
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
    detector.asked();
    detector.rejected(true);
  }
  EXPECT_TRUE(found);
}

// The questions, in calls, about a loop of `period` that is no iteration; the planner answers `late` calls later.
std::vector<uint64_t> questions(uint64_t period, int times, bool soon, uint64_t late = 0) {
  Detector detector;
  std::vector<uint64_t> asked;
  uint64_t answered_at = UINT64_MAX;
  for (int i = 0; i < times; ++i) {
    for (uint64_t word = 0; word < period; ++word) {
      const bool speaks = detector.add(word);
      if (answered_at == UINT64_MAX && speaks) {
        asked.push_back(detector.calls());
        detector.asked();
        answered_at = detector.calls() + late;
      }
      if (detector.calls() >= answered_at) {
        detector.rejected(soon);
        answered_at = UINT64_MAX;
      }
    }
  }
  return asked;
}

TEST(DetectorTest, AsksAgainOnePeriodLaterThenTwoThenFour) {
  for (const uint64_t period : {5u, 7u, 100u}) {
    std::vector<uint64_t> expected;
    for (const uint64_t periods : {2u, 3u, 5u, 9u, 17u, 33u, 65u, 129u, 257u}) expected.push_back(periods * period);
    EXPECT_EQ(questions(period, 400, true), expected);
  }
  EXPECT_EQ(questions(10, 11, true, 25), (std::vector<uint64_t>{20, 50, 80})) << "what came meanwhile counts";
}

// A few calls in front of the iteration that repeat are not what makes the next question wait.
TEST(DetectorTest, QuestionsAboutShortLoopsDoNotDelayThoseAboutLongOnes) {
  std::vector<uint64_t> words(20, 7);
  const std::vector<uint64_t> iteration = {1,  2,  3,  4,  5,  6,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                                           21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39};
  const auto more = repeat(iteration, 5);
  words.insert(words.end(), more.begin(), more.end());
  Detector detector;
  std::vector<uint64_t> asked;
  for (const uint64_t word : words) {
    if (!detector.add(word)) continue;
    if (detector.period() == iteration.size()) asked.push_back((detector.calls() - 20) / iteration.size());
    detector.asked();
    detector.rejected(true);
  }
  EXPECT_EQ(asked, (std::vector<uint64_t>{2, 3, 5}));
}

TEST(DetectorTest, WaitsTwiceAsLongAfterEveryRejectionThatIsNotForSoon) {
  EXPECT_EQ(questions(5, 400, false), (std::vector<uint64_t>{10, 20, 40, 80, 160, 320, 640, 1280}));
}

// Loops of all lengths, one behind the other: questions stay rare however the periods are.
TEST(DetectorTest, QuestionsAreAtMostTwiceTheLogarithmOfTheCalls) {
  EXPECT_TRUE(rc::check("questions about loops that are none stay rare", [] {
    const auto lengths = *rc::gen::container<std::vector<uint64_t>>(40, rc::gen::inRange<uint64_t>(4, 300));
    Detector detector;
    int asked = 0;
    uint64_t word = 0;
    for (const uint64_t length : lengths) {
      for (uint64_t i = 0; i < 6 * length; ++i) {
        if (!detector.add(word + i % length)) continue;
        ++asked;
        detector.asked();
        detector.rejected(true);
      }
      word += length;
    }
    double logarithm = 0;
    for (uint64_t calls = detector.calls(); calls > 1; calls /= 2) ++logarithm;
    RC_ASSERT(asked <= 2 * logarithm);
  }));
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

// Which bytes are others when a launch is tried again: what a kernel may wait for stays.
#include "replay/examine/disturbance.h"

#include "tests/support/test.h"

namespace reprise::replay {
namespace {

using Words = std::vector<uint32_t>;

const unsigned char* bytes_of(const Words& words) { return reinterpret_cast<const unsigned char*>(words.data()); }

AroundLaunch around(const Words& before, const Words& after) {
  return {bytes_of(before), bytes_of(after), before.size() * sizeof(uint32_t)};
}

uint32_t bits_of(float number) {
  uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return bits;
}

Words numbers(size_t count, float first) {
  Words words(count);
  for (size_t i = 0; i < count; ++i) words[i] = bits_of(first + static_cast<float>(i));
  return words;
}

Words laid(const Words& before, const Words& after, bool* everywhere) {
  Words to(before.size());
  *everywhere = lay_pattern(reinterpret_cast<unsigned char*>(to.data()), around(before, after), 0xa5);
  return to;
}

TEST(Disturbance, SmallIntegersWhereSomethingChangedAreCounts) {
  const Words before(64, 0);
  Words after = numbers(64, 1.5F);
  EXPECT_FALSE(has_counted(around(before, after)));
  after[41] = 3;
  EXPECT_TRUE(has_counted(around(before, after))) << "no float is so small";
  std::mt19937 draw(7);
  for (uint32_t& word : after) word = draw() | 0x10000;
  after[41] = 3;
  EXPECT_FALSE(has_counted(around(before, after))) << "by chance, among arbitrary bits";
  std::fill(after.begin() + 40, after.begin() + 48, 0);
  EXPECT_FALSE(has_counted(around(before, after)));
  after[41] = 3;
  EXPECT_TRUE(has_counted(around(before, after))) << "in a piece of its own";
  Words started = before;
  started[41] = 3;
  EXPECT_FALSE(has_counted(around(started, after))) << "it was there before";
}

// Flags of 0 and 1 in bytes, as dropout makes them.
TEST(Disturbance, AMaskOfBytesHasNotCounted) {
  const Words before = numbers(64, 1.5F);
  Words after(64, 0x01000101);
  after[3] = 1;
  EXPECT_FALSE(has_counted(around(before, after)));
  EXPECT_TRUE(has_counted(around(before, Words(64, 1)))) << "one block each";
}

TEST(Disturbance, PatternsGoWhereSomethingChanged) {
  const Words before = numbers(64, 1.5F), after = numbers(64, 7.25F);
  bool everywhere = false;
  EXPECT_EQ(laid(before, after, &everywhere), Words(64, 0xa5a5a5a5));
  EXPECT_TRUE(everywhere);
}

// Partial sums, and behind them a semaphore that is free before and afterwards; what others have left between them.
TEST(Disturbance, AFreeSemaphoreStaysFree) {
  Words before = numbers(128, 1.5F);
  std::fill(before.begin() + 96, before.end(), 0);
  Words after = before;
  for (size_t i = 0; i < 32; ++i) after[i] = bits_of(-2.5F);
  bool everywhere = true;
  const Words to = laid(before, after, &everywhere);
  EXPECT_FALSE(everywhere) << "of the semaphore's line nothing is known";
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(to[i], 0xa5a5a5a5) << i;
  for (size_t i = 32; i < 96; ++i) {
    EXPECT_NE(to[i], before[i]) << i;
    EXPECT_LT(to[i] ^ before[i], 0x00040000u) << i << ": the same number, nearly";
  }
  for (size_t i = 96; i < 128; ++i) EXPECT_EQ(to[i], 0u) << i;
}

// Of random words none that is zero, small or an index becomes another one, unless the launch has changed it.
TEST(Disturbance, NoWordThatMayBeWaitedForIsDisturbed) {
  std::mt19937 draw(7);
  for (int round = 0; round < 2000; ++round) {
    Words before(32 + draw() % 64);
    for (uint32_t& word : before) word = draw() % 3 == 0 ? draw() % 100000 : draw();
    Words after = before;
    for (uint32_t& word : after) word = draw() % 4 == 0 ? draw() | 0x10000000 : word;
    bool everywhere = false;
    const Words to = laid(before, after, &everywhere);
    for (size_t i = 0; i < to.size(); ++i) {
      if (before[i] != after[i]) {
        EXPECT_EQ(to[i], 0xa5a5a5a5);
      } else if (before[i] < 100000) {
        EXPECT_EQ(to[i], before[i]);
      }
    }
  }
}

TEST(Disturbance, NumbersAreTurnedAndAllElseIsCopied) {
  const Words from = {bits_of(1.5F), 0, 17, 0xfffffffe, bits_of(-3e20F)};
  Words to(from.size());
  EXPECT_EQ(disturb_words(reinterpret_cast<unsigned char*>(to.data()), bytes_of(from), 20, 0x00010001), 2u);
  EXPECT_EQ(to, (Words{from[0] ^ 0x00010001, 0, 17, 0xfffffffe, from[4] ^ 0x00010001}));
}

}  // namespace
}  // namespace reprise::replay

#include "preload/trace/median.h"

#include "tests/support/test.h"

namespace reprise::trace {
namespace {

TEST(Median, IsTheMiddleOneOrTheMeanOfTheTwoInTheMiddle) {
  EXPECT_EQ(median({}), 0u);
  EXPECT_EQ(median({7}), 7u);
  EXPECT_EQ(median({5279, 4603}), 4941u);
  EXPECT_EQ(median({9, 1, 5}), 5u);
  EXPECT_EQ(median({1, 100, 4, 2}), 3u);
  EXPECT_EQ(median({UINT64_MAX, UINT64_MAX - 2}), UINT64_MAX - 1) << "their sum is no such number";
}

}  // namespace
}  // namespace reprise::trace

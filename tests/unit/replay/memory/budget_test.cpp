// The rule that turns a budget into a number of chunks, errors on their way to the program, and busy times.
#include "replay/memory/budget.h"

#include <rapidcheck.h>

#include "replay/memory/lanes/uses.h"
#include "replay/progress/stopwatch.h"
#include "replay/queue/faults.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

TEST(BudgetTest, AFixedBudgetIsWhatIsLeftOfIt) {
  const BudgetRule rule{1000, 0};
  EXPECT_EQ(chunk_limit(rule, 100, 0, 0, 0), 10u);
  EXPECT_EQ(chunk_limit(rule, 100, 250, 1 << 20, 0), 7u);
  EXPECT_EQ(chunk_limit(rule, 100, 5000, 0, 0), 0u);
  EXPECT_EQ(chunk_limit(rule, 100, 0, 0, 50), 10u) << "a call's needs never raise a fixed budget";
}

TEST(BudgetTest, APercentageFollowsThePeakAndStaysBelowItsEnd) {
  EXPECT_TRUE(rc::check("the limit never exceeds the final one where that is feasible", [] {
    const auto percent = *rc::gen::inRange<uint64_t>(1, 101);
    const BudgetRule rule{0, static_cast<double>(percent) / 100};
    const auto asked = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 1 << 20));
    uint64_t final_peak = 0;
    for (const uint64_t bytes : asked) final_peak = std::max(final_peak, bytes);
    const uint64_t last = chunk_limit(rule, 64, 0, final_peak, 0);
    const auto working_set = *rc::gen::inRange<uint64_t>(0, last + 1);
    uint64_t peak = 0, before = 0;
    for (const uint64_t bytes : asked) {
      peak = std::max(peak, bytes);
      const uint64_t limit = chunk_limit(rule, 64, 0, peak, working_set);
      RC_ASSERT(limit <= last || limit <= working_set);
      RC_ASSERT(limit >= before);
      before = limit;
    }
  }));
}

TEST(FaultsTest, TellsAnOrdinaryErrorOnceAndABrokenContextForEver) {
  Faults faults;
  EXPECT_EQ(faults.take(), CUDA_SUCCESS);
  faults.report(CUDA_ERROR_INVALID_VALUE);
  faults.report(CUDA_ERROR_OUT_OF_MEMORY);  // the first one counts
  EXPECT_EQ(faults.take(), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(faults.take(), CUDA_SUCCESS);
  faults.report(CUDA_ERROR_INVALID_VALUE);
  faults.report(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faults.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(faults.take(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(UsesTest, KeepsTheLatestPositionPerLaneAndSaysWhenItCannot) {
  LaneUses uses;
  uses.add(3, 10);
  uses.add(3, 7);
  uses.add(1, 2);
  ASSERT_EQ(uses.end() - uses.begin(), 2);
  EXPECT_EQ(uses.begin()->position, 10u);
  EXPECT_FALSE(uses.everything());
  for (LaneIndex lane = 10; lane < 10 + LaneUses::kMost; ++lane) uses.add(lane, 1);
  EXPECT_TRUE(uses.everything());
  LaneUses other;
  other.merge(uses);
  EXPECT_TRUE(other.everything());
  other.clear();
  EXPECT_TRUE(other.empty());
}

TEST(BusyTest, CountsOverlapsOnce) {
  EXPECT_EQ(busy_ns({{0, 10}, {5, 20}, {30, 40}, {40, 45}, {50, 50}}), 35u);
  EXPECT_EQ(both_busy_ns({{0, 10}, {20, 30}}, {{5, 25}}), 10u);
  EXPECT_EQ(both_busy_ns({{0, 10}}, {{10, 20}}), 0u);
  EXPECT_EQ(both_busy_ns({}, {{10, 20}}), 0u);
}

}  // namespace
}  // namespace reprise::replay

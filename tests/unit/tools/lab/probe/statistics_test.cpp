#include "tools/lab/probe/measure/statistics.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"

namespace reprise::probe {
namespace {

TEST(Statistics, OddAndEvenMedians) {
  const auto odd = summarize({9, 1, 5});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->repeats, 3u);
  EXPECT_EQ(odd->median, 5);
  EXPECT_EQ(odd->minimum, 1);
  EXPECT_EQ(odd->maximum, 9);
  EXPECT_EQ(summarize({4, 1, 2, 3})->median, 2.5);
}

TEST(Statistics, NothingComesFromNothing) {
  EXPECT_FALSE(summarize({}));
  EXPECT_FALSE(summarize({1, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(summarize({1, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(quantile({1}, 1.5));
  EXPECT_FALSE(quantile({1}, std::numeric_limits<double>::quiet_NaN()));
}

TEST(Statistics, QuantilesInterpolate) {
  EXPECT_EQ(quantile({10, 20}, 0.25), 12.5);
  EXPECT_EQ(quantile({10, 20, 30}, 0), 10);
  EXPECT_EQ(quantile({10, 20, 30}, 1), 30);
}

RC_GTEST_PROP(Statistics, HalfOfTheSamplesLieOnEitherSideOfTheMedian, (const std::vector<int>& numbers)) {
  RC_PRE(!numbers.empty());
  const std::vector<double> samples(numbers.begin(), numbers.end());
  const auto summary = summarize(samples);
  RC_ASSERT(summary.has_value());
  const auto below = std::count_if(samples.begin(), samples.end(), [&](double s) { return s < summary->median; });
  const auto above = std::count_if(samples.begin(), samples.end(), [&](double s) { return s > summary->median; });
  RC_ASSERT(2 * below <= static_cast<std::ptrdiff_t>(samples.size()));
  RC_ASSERT(2 * above <= static_cast<std::ptrdiff_t>(samples.size()));
  RC_ASSERT(summary->minimum <= summary->median && summary->median <= summary->maximum);
}

}  // namespace
}  // namespace reprise::probe

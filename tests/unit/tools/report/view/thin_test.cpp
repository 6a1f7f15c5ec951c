#include "tools/report/view/thin.h"

#include "tests/support/test.h"
#include "tools/report/view/waits.h"

namespace reprise::report {
namespace {

uint64_t busy(const std::vector<ThinBar>& bars, Lane lane, uint64_t* count) {
  uint64_t sum = 0;
  for (const ThinBar& one : bars) {
    if (one.bar.lane != lane) continue;
    sum += one.busy_ns;
    *count += one.count;
  }
  return sum;
}

// What is drawn is thinner and still has all the work, the end of the recording no less than its begin.
TEST(Thin, BarsKeepEveryPieceOfWork) {
  std::vector<Bar> bars;
  for (uint64_t i = 0; i < 67036; ++i) {
    bars.push_back({i % 3 == 0 ? Lane::to_host : Lane::compute, {i * 100, i * 100 + 60}, i % 2 == 0 ? "a" : "b", 8});
  }
  bars.push_back({Lane::compute, {67036 * 100, 67036 * 100 + 5000000}, "long"});
  const std::vector<ThinBar> thin = thinned(bars, 30000);
  EXPECT_LE(thin.size(), 30000u);
  EXPECT_GT(thin.size(), 1000u);
  uint64_t count = 0;
  EXPECT_EQ(busy(thin, Lane::compute, &count), (67036 - 22346) * 60u + 5000000);
  EXPECT_EQ(busy(thin, Lane::to_host, &count), 22346 * 60u);
  EXPECT_EQ(count, 67037u);
  EXPECT_EQ(thin.back().bar.name, "long");
  EXPECT_EQ(thin.back().count, 1u);
  EXPECT_EQ(thinned(std::vector<Bar>{}, 10).size(), 0u);
}

TEST(Thin, FewBarsStayAsTheyAre) {
  const std::vector<Bar> bars = {{Lane::compute, {0, 1}, "a"}, {Lane::compute, {1, 2}, "b"}};
  const std::vector<ThinBar> thin = thinned(bars, 2);
  ASSERT_EQ(thin.size(), 2u);
  EXPECT_EQ(thin[1].bar.name, "b");
}

TEST(Thin, IterationsAreGroupedByMode) {
  RunLog log;
  std::vector<RunIteration>& all = log.iterations;
  all.resize(300000);
  for (uint64_t i = 0; i < all.size(); ++i) {
    all[i].index = i;
    all[i].planned = i >= 1000;
    all[i].wall_ns = i == 250000 ? 9999 : 10 + i % 7;
    all[i].offload_bytes = 2;
  }
  const std::vector<ThinIteration> thin = thinned(log, 4000);
  EXPECT_LE(thin.size(), 4002u);
  uint64_t count = 0, bytes = 0, most = 0;
  for (const ThinIteration& one : thin) {
    EXPECT_EQ(one.mode, one.first >= 1000 ? RunMode::plan : RunMode::on_demand);
    count += one.count;
    bytes += one.offload_bytes;
    most = std::max(most, one.most_ns);
  }
  EXPECT_EQ(count, 300000u);
  EXPECT_EQ(bytes, 600000u);
  EXPECT_EQ(most, 9999u);
  EXPECT_EQ(thin.back().last, 299999u);
  const std::vector<ThinIteration> sums = sums_by_mode(log);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].count, 1000u);
  EXPECT_EQ(sums[1].count, 299000u);
  EXPECT_EQ(sums[1].most_ns, 9999u);
}

}  // namespace
}  // namespace reprise::report

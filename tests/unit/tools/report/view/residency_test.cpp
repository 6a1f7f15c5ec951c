#include "tools/report/view/residency.h"

#include "tests/support/sample.h"
#include "tests/support/test.h"

namespace reprise::report {
namespace {

using tools::test::kMiB;
using tools::test::sample_plan;
using tools::test::sample_trace;
using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

Pairs pairs(const std::vector<Interval>& intervals) {
  Pairs result;
  for (const Interval& it : intervals) result.emplace_back(it.start_ns, it.end_ns);
  return result;
}

TEST(Residency, AnOffloadedTensorIsAwayUntilItsReloadBegins) {
  const plan::Plan plan = sample_plan();
  const std::vector<TensorView> views = planned_views(plan);
  EXPECT_EQ(pairs(views[2].resident), (Pairs{{0, 300}, {450, 750}}));
  EXPECT_EQ(pairs(views[2].uses), (Pairs{{0, 100}, {650, 750}}));
  ASSERT_EQ(views[2].moves.size(), 2u);
  EXPECT_TRUE(views[2].moves[0].offload);
  EXPECT_FALSE(views[2].moves[1].offload);
}

TEST(Residency, KeptTensorsStayAndFreedOnesLeave) {
  const std::vector<TensorView> views = planned_views(sample_plan());
  EXPECT_EQ(pairs(views[0].resident), (Pairs{{0, 750}}));
  EXPECT_EQ(pairs(views[1].resident), (Pairs{{0, 750}}));
  EXPECT_EQ(pairs(views[3].resident), (Pairs{{300, 450}}));
  EXPECT_EQ(views[3].life.start_ns, 300u);
  EXPECT_EQ(views[3].life.end_ns, 450u);
}

// A tensor whose host copy is still good leaves without an offload: another one just takes its chunks.
TEST(Residency, WhoseChunksAreTakenIsAway) {
  plan::Plan plan = sample_plan();
  plan.vertices[2].acquires.push_back({3, 0});  // the second one also gets the kept tensor's chunks
  EXPECT_EQ(pairs(planned_views(plan)[0].resident), (Pairs{{0, 300}}));
}

TEST(Residency, PlannedMemoryCountsChunksAndWhatIsReserved) {
  const plan::Plan plan = sample_plan();
  const Curve curve = planned_memory(plan, planned_views(plan));
  EXPECT_EQ(curve.front(), (std::pair<uint64_t, uint64_t>{0, 9 * kMiB}));
  EXPECT_EQ(highest(curve), 9 * kMiB);
  EXPECT_EQ(curve.back(), (std::pair<uint64_t, uint64_t>{750, 9 * kMiB}));
}

TEST(Residency, UnmanagedMemoryFollowsTheRecordedCalls) {
  const Curve curve = unmanaged_memory(sample_plan());
  EXPECT_EQ(curve,
            (Curve{{0, 8 * kMiB + 1024}, {100, 12 * kMiB + 1024}, {250, 8 * kMiB + 1024}, {350, 4 * kMiB + 1024}}));
}

TEST(Residency, RecordedMemoryCountsFromTheFirstCall) {
  const Curve curve = recorded_memory(sample_trace());
  EXPECT_EQ(curve.front(), (std::pair<uint64_t, uint64_t>{0, 5 * kMiB}));
  EXPECT_EQ(highest(curve), 9 * kMiB);
  EXPECT_EQ(curve.back().first, 2300u);
  EXPECT_TRUE(recorded_memory(trace::Trace()).empty());
}

TEST(Residency, ThinningKeepsEveryPeak) {
  Curve curve;
  for (uint64_t i = 0; i < 10000; ++i) curve.emplace_back(i, i == 7777 ? 1000 : i % 10);
  const Curve few = thinned(curve, 100);
  EXPECT_LE(few.size(), 110u);
  EXPECT_EQ(highest(few), 1000u);
  EXPECT_EQ(few.back().first, curve.back().first);
}

}  // namespace
}  // namespace reprise::report

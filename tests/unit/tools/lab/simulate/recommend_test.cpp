#include "tools/lab/simulate/recommend.h"

#include "tests/support/test.h"
#include "tools/report/curve/as_fast.h"

namespace reprise::tools {
namespace {

SimulatedRow row(uint64_t mib, uint64_t time_ns) {
  SimulatedRow result;
  result.policy = result.used = "lru";
  result.asked.bytes = result.budget_bytes = mib << 20;
  result.time_ns = time_ns;
  result.planned_ns = time_ns;
  result.compute_ns = 1000;
  result.offload_bytes = result.reload_bytes = 1;
  return result;
}

// The page of a plan calls the same budget one for full speed: there is one margin, and it is said.
TEST(Recommend, TheSmallestWithinTheMarginOfTheFastestIsNamedWithTheMargin) {
  const std::string text = recommend({row(10, 1300), row(12, 1040), row(14, 1020), row(16, 1000)});
  EXPECT_EQ(text,
            "recommended of those asked for: --budget 14MiB, the smallest within 2 % of the fastest: +2.0 % against "
            "computing alone, with lru; the smallest of them that works is 10MiB: +30.0 %");
}

TEST(Recommend, ASlowdownThatIsGivenDecides) {
  const std::vector<SimulatedRow> rows = {row(10, 1300), row(12, 1050), row(14, 1020), row(16, 1000)};
  EXPECT_TRUE(has(recommend(rows, 0.05), "--budget 12MiB: +5.0 %"));
  EXPECT_TRUE(has(recommend(rows, 0.04), "--budget 14MiB: +2.0 %"));
  EXPECT_TRUE(has(recommend({row(10, 1300)}, 0.2), "none of these"));
}

// `plan` makes none for such a budget.
TEST(Recommend, WhereNothingHasToMoveNoPolicyIsNamed) {
  SimulatedRow all = row(16, 1000);
  all.offload_bytes = all.reload_bytes = 0;
  const std::string nothing = ": +0.0 % against computing alone, as nothing has to move; the smallest of them";
  EXPECT_TRUE(has(recommend({row(10, 1300), all}), nothing));
  all.planned_ns = all.time_ns = 1010;  // it computes again instead
  EXPECT_TRUE(has(recommend({row(10, 1300), all}), ", with lru"));
}

TEST(Recommend, MoreMemoryMayBeFasterWhereTheLargestIsSlow) {
  EXPECT_TRUE(has(recommend({row(10, 1300), row(12, 1030)}), "; more memory may be faster still"));
  EXPECT_FALSE(has(recommend({row(10, 1300), row(12, 1020)}), "more memory"));
}

TEST(Recommend, TheMarginIsExact) {
  EXPECT_TRUE(report::is_as_fast(1020, 1000));
  EXPECT_FALSE(report::is_as_fast(1021, 1000));
  EXPECT_TRUE(report::is_as_fast(uint64_t{1} << 63, uint64_t{1} << 63));
}

}  // namespace
}  // namespace reprise::tools

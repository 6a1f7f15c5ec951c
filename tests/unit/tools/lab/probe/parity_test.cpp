
#include "tests/support/test.h"
#include "tools/lab/probe/subjects/counted_programs.h"

namespace reprise::probe {
namespace {

TEST(Parity, NamesWhatTheShimMissed) {
  const Parity parity = compare(Json::parse(R"({"launched": {"a": 3, "b": 1}, "recorded": {"a": 5, "c": 2, "b": 1}})"));
  EXPECT_EQ(parity.seen, 4u);
  EXPECT_EQ(parity.recorded, 8u);
  EXPECT_EQ(parity.missed, Json::parse(R"({"a": 2, "c": 2})"));
  EXPECT_TRUE(parity.surplus.empty());
}

TEST(Parity, NamesWhatCuptiLacks) {
  const Parity parity = compare(Json::parse(R"({"launched": {"a": 3, "b": 4}, "recorded": {"a": 3}})"));
  EXPECT_TRUE(parity.missed.empty());
  EXPECT_EQ(parity.surplus, Json::parse(R"({"b": 4})"));
}

TEST(Parity, EqualTotalsDoNotHideDifferentKernels) {
  const Parity parity = compare(Json::parse(R"({"launched": {"a": 1}, "recorded": {"b": 1}})"));
  EXPECT_EQ(parity.seen, parity.recorded);
  EXPECT_FALSE(parity.missed.empty());
  EXPECT_FALSE(parity.surplus.empty());
}

}  // namespace
}  // namespace reprise::probe

#include "preload/trace/nearest.h"

#include "tests/support/test.h"

namespace reprise {
namespace {

const std::vector<std::string> kNames = {"run", "record", "replay", "report", "plan"};

TEST(Nearest, CountsLettersThatDiffer) {
  EXPECT_EQ(distance_between("plan", "plan"), 0u);
  EXPECT_EQ(distance_between("", "plan"), 4u);
  EXPECT_EQ(distance_between("paln", "plan"), 1u) << "two neighbours were swapped";
  EXPECT_EQ(distance_between("plans", "plan"), 1u);
  EXPECT_EQ(distance_between("kitten", "sitting"), 3u);
  EXPECT_EQ(distance_between("sitting", "kitten"), 3u);
}

TEST(Nearest, FindsWhatWasMeant) {
  EXPECT_EQ(nearest("rnu", kNames), "run");
  EXPECT_EQ(nearest("reprot", kNames), "report");
  EXPECT_EQ(nearest("recrod", kNames), "record");
  EXPECT_EQ(did_you_mean("pln", kNames), "; did you mean plan?");
}

TEST(Nearest, IsSilentWhereNothingIsClose) {
  for (const char* word : {"frobnicate", "", "x", "dump", "--"}) EXPECT_EQ(did_you_mean(word, kNames), "") << word;
  EXPECT_EQ(nearest("foo", std::vector<std::string>{"log"}), "") << "most of it is another word";
}

}  // namespace
}  // namespace reprise

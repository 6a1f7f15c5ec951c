// What the code of habits.cu says, held against the truth in it: for builds that are kept, so that neither nvcc nor
// nvdisasm is needed. `check --keep` makes them anew.
#include "analyzer/code/listing/listing.h"
#include "tests/code/kept.h"
#include "tests/code/truth.h"

namespace reprise::code {
namespace {

struct Build {
  const char* name;
  int exact;  // at least so many have exactly the right sets
  int pure;
  int hidden_for_none;  // and so many at most lose a claim
};

class Habits : public testing::TestWithParam<Build> {};

TEST_P(Habits, NoClaimIsWrongAndMostAreExact) {
  const Build& build = GetParam();
  const auto truths = read_truth(read_file(std::string(REPRISE_CODE_TESTS) + "/habits.cu"));
  ASSERT_EQ(truths.size(), 86U);
  const std::string stem = build.name;
  const Score score = check(truths, kept(stem + ".cubin"), kept(stem + ".text"));
  for (const std::string& wrong : score.wrong) ADD_FAILURE() << wrong;
  EXPECT_EQ(score.kernels, 86);
  EXPECT_GE(score.exact, build.exact) << score.text();
  EXPECT_GE(score.pure_found, build.pure) << score.text();
  EXPECT_LE(score.hidden_for_none, build.hidden_for_none) << score.text();
  EXPECT_GE(score.hidden_told, 26) << score.text();
}

INSTANTIATE_TEST_SUITE_P(Builds, Habits,
                         testing::Values(Build{"sm_75-O3", 55, 31, 0}, Build{"sm_80-rdc", 55, 32, 0},
                                         Build{"sm_90-O3", 55, 32, 0}, Build{"sm_90-ptxas-O0", 52, 29, 1}));

// Text that was damaged: an error, or kernels of which less is known, never a fall.
TEST(DamagedText, IsReadWithoutHarm) {
  const std::string stem = "sm_90-O3";
  const std::string text = kept(stem + ".text");
  const auto image = good(images::parse_code(kept(stem + ".cubin")));
  std::mt19937 random(1);
  int analysed = 0;
  for (int round = 0; round < 60; ++round) {
    const images::KernelCode& kernel = image.kernels[random() % image.kernels.size()];
    const size_t begin = text.find(".section\t.text." + kernel.name + ",");
    if (begin == std::string::npos) continue;
    std::string damaged = "\t.target\tsm_90\n\t" + text.substr(begin, text.find(".section", begin + 8) - begin);
    for (int change = 0; change < 1 + round / 4; ++change) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          damaged.erase(at, random() % 40);
          break;
        case 2:
          damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 40));
          break;
        default:
          damaged[at] = "RUP0123456789.,[]+-@!/*;"[random() % 24];
      }
    }
    const auto listing = Listing::read(damaged);
    if (!listing.ok()) {
      EXPECT_FALSE(listing.status().message().empty());
      continue;
    }
    analyse(listing.value(), image, kernel);
    ++analysed;
  }
  EXPECT_GT(analysed, 5);
}

}  // namespace
}  // namespace reprise::code

// What the code of habits.cu says, held against the truth in it: for builds that are kept, so that neither nvcc nor
// nvdisasm is needed. `check --keep` makes them anew.
#include <zstd.h>

#include "analyzer/code/listing/listing.h"
#include "tests/code/truth.h"
#include "tests/support/test.h"

namespace reprise::code {
namespace {

std::string data(const std::string& name) { return std::string(REPRISE_CODE_TESTS) + "/data/" + name; }

std::string unpacked(const std::string& path) {
  const std::string packed = read_file(path);
  std::string content(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  const size_t got = ZSTD_decompress(content.data(), content.size(), packed.data(), packed.size());
  EXPECT_EQ(ZSTD_isError(got), 0U) << path;
  EXPECT_EQ(got, content.size()) << path;
  return content;
}

struct Build {
  const char* name;
  int exact;  // at least so many have exactly the right sets
  int pure;
};

class Habits : public testing::TestWithParam<Build> {};

TEST_P(Habits, NoClaimIsWrongAndMostAreExact) {
  const Build& build = GetParam();
  const auto truths = read_truth(read_file(std::string(REPRISE_CODE_TESTS) + "/habits.cu"));
  ASSERT_EQ(truths.size(), 84U);
  const std::string stem = data(build.name);
  const Score score = check(truths, unpacked(stem + ".cubin.zst"), unpacked(stem + ".text.zst"));
  for (const std::string& wrong : score.wrong) ADD_FAILURE() << wrong;
  EXPECT_EQ(score.kernels, 84);
  EXPECT_GE(score.exact, build.exact) << score.text();
  EXPECT_GE(score.pure_found, build.pure) << score.text();
  EXPECT_EQ(score.hidden_for_none, 0) << score.text();
  EXPECT_GE(score.hidden_told, 26) << score.text();
}

INSTANTIATE_TEST_SUITE_P(Builds, Habits,
                         testing::Values(Build{"sm_75-O3", 54, 31}, Build{"sm_80-rdc", 54, 32},
                                         Build{"sm_90-O3", 54, 32}, Build{"sm_90-ptxas-O0", 52, 29}));

// Text that was damaged: an error, or kernels of which less is known, never a fall.
TEST(DamagedText, IsReadWithoutHarm) {
  const std::string stem = data("sm_90-O3");
  const std::string text = unpacked(stem + ".text.zst");
  const auto image = good(images::parse_code(unpacked(stem + ".cubin.zst")));
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

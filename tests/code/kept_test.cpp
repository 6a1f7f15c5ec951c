// Code facts that were kept say what they said.
#include "analyzer/code/kept.h"

#include <zstd.h>

#include "analyzer/code/launch.h"
#include "analyzer/code/listing/listing.h"
#include "analyzer/code/store.h"
#include "tests/support/test.h"

namespace reprise::code {
namespace {

std::string unpacked(const std::string& name) {
  const std::string packed = read_file(std::string(REPRISE_CODE_TESTS) + "/data/" + name);
  std::string content(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  EXPECT_EQ(ZSTD_decompress(content.data(), content.size(), packed.data(), packed.size()), content.size()) << name;
  return content;
}

std::vector<CodeFacts> facts_of_habits() {
  const auto image = good(images::parse_code(unpacked("sm_90-O3.cubin.zst")));
  const auto listing = good(Listing::read(unpacked("sm_90-O3.text.zst")));
  std::vector<CodeFacts> all;
  for (const images::KernelCode& kernel : image.kernels) all.push_back(analyse(listing, image, kernel));
  return all;
}

LaunchWords random_words(std::mt19937& random) {
  LaunchWords words;
  for (uint32_t at = 0; at < 64; at += 8) {
    const uint32_t kind = random() % 4;
    if (kind == 0) words.null.insert(at);
    if (kind > 1) words.live.insert(at);
  }
  return words;
}

TEST(Kept, FactsSayWhatTheySaid) {
  std::mt19937 random(1);
  for (const CodeFacts& facts : facts_of_habits()) {
    const CodeFacts kept = good(from_text(to_text(facts)));
    EXPECT_EQ(kept.kernel, facts.kernel);
    EXPECT_EQ(kept.unknown, facts.unknown);
    EXPECT_EQ(kept.repeats(), facts.repeats()) << facts.kernel;
    EXPECT_EQ(to_text(kept), to_text(facts));
    for (int round = 0; round < 50; ++round) {
      const LaunchWords words = random_words(random);
      const auto before = operands_of(facts, words);
      const auto after = operands_of(kept, words);
      ASSERT_EQ(before.has_value(), after.has_value()) << facts.kernel;
      if (before) {
        EXPECT_EQ(before->read, after->read) << facts.kernel;
        EXPECT_EQ(before->written, after->written) << facts.kernel;
        EXPECT_EQ(before->null, after->null) << facts.kernel;
      }
    }
  }
}

TEST(Kept, DamagedFactsAreNone) {
  const std::string text = to_text(facts_of_habits().front());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_FALSE(from_text(other).ok()) << at;
    EXPECT_FALSE(from_text(text.substr(0, at)).ok()) << at;
  }
}

TEST(Kept, AStoreHasWhatWasKeptAndNoMore) {
  const Scratch scratch;
  const CodeStore store(scratch.path("facts"));
  const CodeFacts facts = facts_of_habits().front();
  EXPECT_EQ(store.load(7).status().code(), StatusCode::not_found);
  ASSERT_TRUE(store.keep(7, facts).ok());
  EXPECT_EQ(to_text(good(store.load(7))), to_text(facts));
  EXPECT_FALSE(store.load(8).ok());
  EXPECT_FALSE(CodeStore("/dev/null").keep(7, facts).ok());
}

}  // namespace
}  // namespace reprise::code

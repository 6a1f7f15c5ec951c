// Digests on a device, simulated or real: any change shows, the way the bytes are cut up does not.
#include "replay/digest/digests.h"

#include "preload/driver/driver.h"
#include "tests/support/test.h"

namespace reprise::replay {
namespace {

class DigestsTest : public testing::Test {
 protected:
  void SetUp() override {
    CUdevice device = 0;
    if (driver().cuInit(0) != CUDA_SUCCESS || driver().cuDeviceGet(&device, 0) != CUDA_SUCCESS) std::exit(77);
    ASSERT_EQ(driver().cuDevicePrimaryCtxRetain(&context_, device), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuCtxSetCurrent(context_), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuMemAlloc(&memory_, kBytes), CUDA_SUCCESS);
    ASSERT_TRUE(digests_.available());
  }
  void TearDown() override {
    digests_.close();
    driver().cuMemFree(memory_);
    driver().cuStreamDestroy(stream_);
  }

  // Of the first `bytes` bytes, in parts that end at multiples of `part`.
  DigestCell digest(const std::vector<unsigned char>& content, uint64_t part) {
    EXPECT_EQ(driver().cuMemcpyHtoDAsync(memory_, content.data(), content.size(), stream_), CUDA_SUCCESS);
    const DigestCell cell = digests_.take();
    EXPECT_EQ(digests_.begin(cell, stream_), CUDA_SUCCESS);
    for (uint64_t at = 0; at < content.size(); at += part) {
      const uint64_t bytes = std::min<uint64_t>(part, content.size() - at);
      EXPECT_EQ(digests_.add(cell, memory_ + at, bytes, at, stream_), CUDA_SUCCESS);
    }
    EXPECT_EQ(digests_.finish(cell, stream_), CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
    return cell;
  }
  bool same(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b) {
    DigestCell one = digest(a, kBytes), two = digest(b, kBytes);
    const bool equal = digests_.equal(one, two);
    digests_.give_back(&one);
    digests_.give_back(&two);
    return equal;
  }

  static constexpr uint64_t kBytes = 1 << 20;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr memory_ = 0;
  Digests digests_;
};

std::vector<unsigned char> random_bytes(uint64_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> content(bytes);
  for (unsigned char& byte : content) byte = static_cast<unsigned char>(random());
  return content;
}

TEST_F(DigestsTest, PartsDoNotMatter) {
  for (const uint64_t bytes : {1u, 7u, 8u, 9u, 63u, 4096u, 65537u, 300001u, 1u << 20}) {
    const auto content = random_bytes(bytes, static_cast<unsigned>(bytes));
    const DigestCell whole = digest(content, kBytes);
    for (const uint64_t part : {uint64_t{8}, uint64_t{4096}, uint64_t{65536}}) {
      if (content.size() / part > 64) continue;
      EXPECT_TRUE(digests_.equal(whole, digest(content, part))) << bytes << " in parts of " << part;
    }
  }
}

// One bit anywhere, also in the last bytes of no whole word; two words that change places; the same change twice, which
// a plain sum or xor would not see; more zeros at the end.
TEST_F(DigestsTest, EveryChangeShows) {
  std::mt19937 random(7);
  for (const uint64_t bytes : {5u, 8u, 1000u, 65539u}) {
    const auto content = random_bytes(bytes, 3);
    EXPECT_TRUE(same(content, content));
    for (int i = 0; i < 40; ++i) {
      auto other = content;
      other[random() % bytes] ^= static_cast<unsigned char>(1u << random() % 8);
      EXPECT_FALSE(same(content, other)) << bytes;
    }
    auto longer = content;
    longer.resize(bytes + 16);
    auto longest = content;
    longest.resize(bytes + 24);
    EXPECT_FALSE(same(longer, longest));
  }
  const auto zeros = std::vector<unsigned char>(65536);
  for (uint64_t i = 0; i < 60; ++i) {
    const uint64_t byte = i % 8;
    const auto change = static_cast<unsigned char>(1 + i);
    auto words = zeros;
    const uint64_t first = random() % 4096 * 8;
    const uint64_t second = first + 8 + random() % 4095 * 8;
    words[first + byte] = change;
    auto moved = zeros;
    moved[second + byte] = change;
    EXPECT_FALSE(same(words, moved)) << i;
    auto twice = words;
    twice[second + byte] = static_cast<unsigned char>(-change);
    EXPECT_FALSE(same(zeros, twice)) << i;
    EXPECT_FALSE(same(words, twice)) << i;
  }
}

TEST_F(DigestsTest, CellsAreGivenOutOnce) {
  std::vector<DigestCell> cells;
  for (uint32_t i = 0; i < Digests::kCells; ++i) cells.push_back(digests_.take());
  EXPECT_EQ(digests_.take(), kNoDigest);
  std::sort(cells.begin(), cells.end());
  EXPECT_TRUE(std::adjacent_find(cells.begin(), cells.end()) == cells.end());
  DigestCell last = cells.back();
  digests_.give_back(&last);
  EXPECT_EQ(last, kNoDigest);
  EXPECT_EQ(digests_.take(), cells.back());
}

}  // namespace
}  // namespace reprise::replay

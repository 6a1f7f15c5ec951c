// Dataflow hashing: every byte of every argument counts, addresses do not.
#include "tools/sim/twins/hashing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace reprise::sim {
namespace {

std::map<uint64_t, uint64_t> noted;  // base -> bytes

bool lookup(uint64_t address, uint64_t* base, uint64_t* bytes) {
  auto above = noted.upper_bound(address);
  if (above == noted.begin()) return false;
  --above;
  if (address - above->first >= above->second) return false;
  *base = above->first;
  *bytes = above->second;
  return true;
}

// One launch of kernel(float* a, float* b, int n, const float* inside_a) on tensors of its own, somewhere in memory.
class Scene {
 public:
  explicit Scene(size_t shift = 0) : memory_(4096 + shift), a_(memory_.data() + shift), b_(a_ + 2048) {
    for (size_t i = 0; i < 1000; ++i) a_[i] = static_cast<uint8_t>(i * 7);
    for (size_t i = 0; i < 500; ++i) b_[i] = static_cast<uint8_t>(i * 3);
  }

  std::vector<uint8_t> run() {
    noted.clear();
    noted[address(a_)] = 1000;
    noted[address(b_)] = 500;
    KernelImage kernel;
    kernel.name = name_;
    kernel.parameters = {{0x210, 8}, {0x218, 8}, {0x220, 4}, {0x228, 8}};
    kernel.parameters_known = true;
    uint8_t blob[32];
    std::memset(blob, static_cast<int>(padding_), sizeof blob);
    const uint64_t words[] = {address(a_), address(b_), address(a_) + inside_};
    std::memcpy(blob, words, 16);
    std::memcpy(blob + 16, &count_, 4);
    std::memcpy(blob + 24, words + 2, 8);
    execute_kernel({&kernel, blob, sizeof blob, {grid_, 1, 1}, {32, 1, 1}, shared_bytes_}, &lookup);
    std::vector<uint8_t> result(1500);
    std::memcpy(result.data(), a_, 1000);
    std::memcpy(result.data() + 1000, b_, 500);
    EXPECT_EQ(a_[1000], 0);  // beyond the extents nothing is written
    EXPECT_EQ(b_[500], 0);
    return result;
  }

  std::string name_ = "kernel";
  uint32_t grid_ = 8;
  uint32_t shared_bytes_ = 0;
  int count_ = 5;
  uint64_t inside_ = 100;
  unsigned padding_ = 0;

 private:
  static uint64_t address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
  std::vector<uint8_t> memory_;

 public:
  uint8_t* a_;
  uint8_t* b_;
};

TEST(Hashing, SameDataElsewhereGivesSameResult) {
  const auto expected = Scene().run();
  EXPECT_EQ(Scene(512).run(), expected);
  Scene padded;
  padded.padding_ = 0xee;  // bytes between parameters belong to none
  EXPECT_EQ(padded.run(), expected);
}

TEST(Hashing, EverythingElseCounts) {
  const auto expected = Scene().run();
  const auto differs = [&](auto change) {
    Scene scene;
    change(scene);
    const auto result = scene.run();
    // Both tensors change, not only the one that was touched.
    return !std::equal(result.begin(), result.begin() + 1000, expected.begin()) &&
           !std::equal(result.begin() + 1000, result.end(), expected.begin() + 1000);
  };
  EXPECT_FALSE(differs([](Scene&) {}));
  EXPECT_TRUE(differs([](Scene& scene) { scene.name_ = "other"; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.grid_ = 9; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.shared_bytes_ = 16; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.count_ = 6; }));
  EXPECT_TRUE(differs([](Scene& scene) { scene.inside_ = 104; }));
  for (const size_t at : {0u, 1u, 31u, 32u, 500u, 992u, 999u}) {
    EXPECT_TRUE(differs([&](Scene& scene) { scene.a_[at] ^= 1; })) << at;
  }
  EXPECT_TRUE(differs([](Scene& scene) { scene.b_[499] ^= 0x80; }));
}

TEST(Hashing, PointerBehindTheLastByteNamesTheTensor) {
  Scene behind;
  behind.inside_ = 1000;
  const auto first = behind.run();
  Scene again(256);
  again.inside_ = 1000;
  EXPECT_EQ(again.run(), first);
}

TEST(Hashing, StreamHasNoRepetition) {
  std::vector<uint64_t> words(4096);
  fill_content(words.data(), words.size() * 8 - 3, 42);
  EXPECT_EQ(reinterpret_cast<uint8_t*>(words.data())[words.size() * 8 - 1], 0);
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::adjacent_find(words.begin(), words.end()), words.end());
}

TEST(Hashing, UnknownLayoutIsScannedAsAWhole) {
  std::vector<uint64_t> tensor(16);
  noted.clear();
  noted[reinterpret_cast<uint64_t>(tensor.data())] = 128;
  KernelImage kernel;
  kernel.name = "unknown";
  const uint64_t blob[2] = {7, reinterpret_cast<uint64_t>(tensor.data())};
  execute_kernel({&kernel, reinterpret_cast<const uint8_t*>(blob), 16, {1, 1, 1}, {1, 1, 1}, 0}, &lookup);
  for (const uint64_t word : tensor) EXPECT_NE(word, 0u);
}

}  // namespace
}  // namespace reprise::sim

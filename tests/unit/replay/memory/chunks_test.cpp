// The chunk pool on a fake driver: never more than the limit, never a chunk twice, refusals change nothing.
#include "replay/memory/chunks.h"

#include <rapidcheck.h>

#include "replay/memory/tensors.h"
#include "tests/support/test.h"
#include "tests/unit/replay/fake_driver.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class ChunkPoolTest : public ::testing::Test {
 protected:
  ChunkPoolTest() {
    pool_.open(0, 4096);
    pool_.set_limit(3);
  }
  ~ChunkPoolTest() override { EXPECT_EQ(driver_.violations, Calls{}); }
  ChunkIndex take() { return pool_.take_free(&refused_); }

  testing::FakeDriver driver_;
  ChunkPool pool_;
  CUresult refused_ = CUDA_SUCCESS;
};

TEST_F(ChunkPoolTest, CreatesUpToTheLimitAndReusesTheOldest) {
  EXPECT_EQ(pool_.available(), 3u);
  const ChunkIndex a = take(), b = take(), c = take();
  EXPECT_EQ(std::set({a, b, c}).size(), 3u);
  EXPECT_EQ(take(), kNoChunk);
  EXPECT_EQ(refused_, CUDA_SUCCESS) << "the limit refuses, not the driver";
  EXPECT_EQ(pool_.available(), 0u);
  EXPECT_EQ(pool_.bytes(), 3u * 4096);
  pool_.give_back(a);
  pool_.give_back(b);
  driver_.clear();
  EXPECT_EQ(take(), a);
  EXPECT_EQ(take(), b);
  EXPECT_EQ(driver_.calls(), Calls{});
}

TEST_F(ChunkPoolTest, WhatAllocationsAheadCouldUseIsTakenLast) {
  const ChunkIndex a = take(), b = take(), c = take();
  for (const ChunkIndex chunk : {a, b, c}) pool_.give_back(chunk);
  for (const ChunkIndex chunk : {b, a, b}) pool_.claim(chunk, chunk == a ? 5 : 4);
  EXPECT_EQ(take(), c);
  EXPECT_EQ(take(), a);
  pool_.give_back(c);
  pool_.claim(c, 6);
  pool_.end_claims(5);
  EXPECT_EQ(take(), b) << "the claim is over";
}

TEST_F(ChunkPoolTest, ARefusedCreationTakesNothing) {
  driver_.fail("cuMemCreate", 2);
  take();
  EXPECT_EQ(take(), kNoChunk);
  EXPECT_EQ(refused_, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(pool_.existing(), 1u);
  EXPECT_EQ(pool_.bytes(), 4096u);
  pool_.set_limit(pool_.existing());
  EXPECT_EQ(pool_.available(), 0u);
  EXPECT_EQ(take(), kNoChunk);
  EXPECT_EQ(driver_.count("cuMemCreate"), 2u) << "it is not asked again";
}

TEST_F(ChunkPoolTest, AboveTheLimitNoChunkIsHandedOut) {
  const ChunkIndex a = take(), b = take();
  pool_.give_back(a);
  pool_.set_limit(1);
  EXPECT_TRUE(pool_.exceeds_limit());
  EXPECT_EQ(pool_.available(), 0u);
  EXPECT_EQ(take(), kNoChunk);
  pool_.destroy(a);
  EXPECT_EQ(driver_.bytes, 4096u);
  EXPECT_FALSE(pool_.exceeds_limit());
  EXPECT_EQ(take(), kNoChunk);
  pool_.give_back(b);
  EXPECT_EQ(take(), b);
  EXPECT_EQ(pool_.peak_bytes(), 2u * 4096);
}

TEST_F(ChunkPoolTest, ADestroyedChunkComesBackClean) {
  const ChunkIndex a = take();
  ResidentTensor tensor;
  pool_[a].occupant = &tensor;
  pool_[a].uses.add(3, 5);
  pool_.give_back(a);
  EXPECT_EQ(pool_[a].occupant, nullptr);
  EXPECT_FALSE(pool_[a].uses.empty()) << "its next occupant waits for them";
  pool_.destroy(a);
  EXPECT_EQ(pool_[a].handle, 0u);
  EXPECT_EQ(take(), a) << "the number is used again";
  EXPECT_TRUE(pool_[a].uses.empty());
  EXPECT_EQ(pool_.size(), 1u);
}

// What is held around them is known only as far as somebody has asked the driver: the watcher may do so.
TEST_F(ChunkPoolTest, EachNewChunkIsToldWithWhatIsHeldAroundIt) {
  struct Seen {
    ChunkPool& pool;
    std::vector<uint64_t> at_once = {};
  } seen{pool_};
  Around around;
  pool_.share(5 * 4096, &around,
              {[](void* user, uint64_t at_once) noexcept {
                 auto& watched = *static_cast<Seen*>(user);
                 EXPECT_EQ(watched.pool.changes() % 2, 0u) << "the chunk is there";
                 EXPECT_EQ(watched.pool.bytes(), watched.pool.existing() * 4096);
                 watched.at_once.push_back(at_once);
               },
               &seen});
  around.hold(3 * 4096);
  const ChunkIndex a = take();
  take();
  EXPECT_EQ(take(), kNoChunk) << "no room beside what is held";
  pool_.give_back(a);
  take();
  pool_.give_back(a);
  const uint32_t changes = pool_.changes();
  pool_.destroy(a);
  EXPECT_NE(pool_.changes(), changes);
  EXPECT_EQ(pool_.changes() % 2, 0u);
  around.hold(4096);
  take();
  EXPECT_EQ(seen.at_once, (std::vector<uint64_t>{4 * 4096, 5 * 4096, 3 * 4096}));
}

TEST_F(ChunkPoolTest, RebuildingFreesWhatHasNoOccupantAndIsNotReserved) {
  const std::vector<ChunkIndex> all = {take(), take(), take()};
  ResidentTensor tensor;
  pool_[all[0]].occupant = &tensor;
  pool_[all[1]].reserved = true;
  pool_.rebuild_free();
  EXPECT_EQ(pool_.available(), 1u);
  EXPECT_EQ(take(), all[2]);
  EXPECT_EQ(take(), kNoChunk);
}

TEST(ChunkPoolPropertyTest, HandsOutNoChunkTwiceAndNeverMoreThanTheLimit) {
  EXPECT_TRUE(rc::check("the pool's numbers are the model's", [] {
    testing::FakeDriver driver;
    ChunkPool pool;
    pool.open(0, 64);
    uint64_t limit = testing::uniform<uint64_t>(0, 10);
    pool.set_limit(limit);
    std::vector<ChunkIndex> taken;
    std::vector<ChunkIndex> free;
    const int steps = testing::uniform(1, 150);
    for (int step = 0; step < steps; ++step) {
      driver.heal();
      if (testing::one_in(8)) driver.fail("cuMemCreate", 1);
      const auto remove = [](std::vector<ChunkIndex>& from) {
        const size_t index = testing::uniform<size_t>(0, from.size());
        const ChunkIndex chunk = from[index];
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(index));
        return chunk;
      };
      CUresult refused = CUDA_SUCCESS;
      switch (testing::uniform(0, 6)) {
        case 0:
        case 1: {
          const uint64_t before = pool.available();
          const ChunkIndex chunk = pool.take_free(&refused);
          if (chunk == kNoChunk) {
            RC_ASSERT(before == 0 || refused != CUDA_SUCCESS);
            break;
          }
          RC_ASSERT(std::find(taken.begin(), taken.end(), chunk) == taken.end());
          std::erase(free, chunk);
          taken.push_back(chunk);
          break;
        }
        case 2:
        case 3:
          if (taken.empty()) break;
          free.push_back(remove(taken));
          pool.give_back(free.back());
          break;
        case 4:
          if (free.empty()) break;
          if (testing::one_in(2)) {
            taken.push_back(remove(free));
            pool.take(taken.back());
          } else {
            pool.destroy(remove(free));
          }
          break;
        case 5:
          limit = testing::uniform<uint64_t>(0, 10);
          pool.set_limit(limit);
          break;
      }
      RC_ASSERT(pool.existing() == taken.size() + free.size());
      RC_ASSERT(pool.bytes() == driver.bytes);
      const uint64_t existing = taken.size() + free.size();
      RC_ASSERT(pool.available() == (existing > limit ? 0 : free.size() + limit - existing));
      for (const ChunkIndex chunk : free) RC_ASSERT(pool.is_free(chunk));
      for (const ChunkIndex chunk : taken) RC_ASSERT(!pool.is_free(chunk));
    }
    RC_ASSERT(driver.violations.empty());
  }));
}

}  // namespace
}  // namespace reprise::replay

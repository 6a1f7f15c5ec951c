// What allocations take of a device: places in blocks, and bytes by the rule of decision 0026.
#include "preload/footprint/footprint.h"

#include <rapidcheck.h>

#include "preload/footprint/chunk_size.h"
#include "tests/support/test.h"

namespace reprise::footprint {
namespace {

constexpr uint64_t kBlock = 64 * 1024;

TEST(SlabTest, TakesTheLowestPlaceThatIsFree) {
  Slab slab;
  slab.reset(1 << 20, 4 * kBlock, kBlock);
  const uint64_t a = slab.allocate(1000), b = slab.allocate(512), c = slab.allocate(1);
  EXPECT_EQ(a, uint64_t{1} << 20);
  EXPECT_EQ(b, a + 1024);
  EXPECT_EQ(c, b + 512);
  slab.release(a, 1000);
  slab.release(b, 512);
  EXPECT_EQ(slab.allocate(1536), a) << "neighbours join";
  EXPECT_EQ(slab.allocate(kBlock), a + kBlock) << "nothing lies over a block's end";
  EXPECT_EQ(slab.allocate(kBlock + 1), 0u);
  EXPECT_EQ(slab.blocks(), 2u);
}

// Random programs: places are aligned and disjoint, lie in one block each, and the blocks that count are those in which
// something lives. A place is new only where none that is free would do.
TEST(SlabTest, PlacesAreDisjointAndBlocksAreCounted) {
  EXPECT_TRUE(rc::check("places", [] {
    Slab slab;
    const uint64_t blocks = *rc::gen::inRange<uint64_t>(1, 9);
    slab.reset(1 << 20, blocks * kBlock, kBlock);
    std::map<uint64_t, uint64_t> live;  // address -> bytes
    const auto steps = *rc::gen::container<std::vector<std::pair<uint32_t, uint32_t>>>(
        rc::gen::pair(rc::gen::inRange<uint32_t>(0, 3), rc::gen::inRange<uint32_t>(1, kBlock / 2)));
    for (const auto& [what, number] : steps) {
      if (what != 0 || live.empty()) {
        const uint64_t address = slab.allocate(number);
        if (address == 0) continue;
        const uint64_t end = address + Slab::padded(number);
        RC_ASSERT(address % Slab::kAlignment == 0u);
        RC_ASSERT(address / kBlock == (end - 1) / kBlock);
        RC_ASSERT(end <= (1 << 20) + blocks * kBlock);
        const auto next = live.lower_bound(address);
        if (next != live.end()) RC_ASSERT(next->first >= end);
        if (next != live.begin()) RC_ASSERT(std::prev(next)->first + Slab::padded(std::prev(next)->second) <= address);
        live[address] = number;
      } else {
        const auto gone = std::next(live.begin(), static_cast<std::ptrdiff_t>(number % live.size()));
        slab.release(gone->first, gone->second);
        live.erase(gone);
      }
      std::set<uint64_t> used;
      for (const auto& [address, bytes] : live) used.insert(address / kBlock);
      RC_ASSERT(slab.blocks() == used.size());
    }
    for (const auto& [address, bytes] : live) slab.release(address, bytes);
    for (uint64_t i = 0; i < blocks; ++i) RC_ASSERT(slab.allocate(kBlock) == (1 << 20) + i * kBlock);
  }));
}

TEST(FootprintTest, SmallOnesShareAndLargeOnesAreRounded) {
  Footprint footprint;
  footprint.open(kBlock);
  footprint.allocated(1, kBlock / 2 - 1);
  EXPECT_EQ(footprint.bytes(), kBlock);
  footprint.allocated(2, kBlock / 2 - 600);
  EXPECT_EQ(footprint.bytes(), kBlock);
  footprint.allocated(3, kBlock / 2);
  EXPECT_EQ(footprint.bytes(), 2 * kBlock) << "half a block is large";
  footprint.allocated(4, 3 * kBlock + 1);
  EXPECT_EQ(footprint.bytes(), 6 * kBlock);
  footprint.freed(1, kBlock / 2 - 1);
  EXPECT_EQ(footprint.bytes(), 6 * kBlock) << "the block is still in use";
  footprint.freed(2, kBlock / 2 - 600);
  EXPECT_EQ(footprint.bytes(), 5 * kBlock);
  footprint.freed(4, 3 * kBlock + 1);
  footprint.freed(3, kBlock / 2);
  EXPECT_EQ(footprint.bytes(), 0u);
}

// A chunk takes the driver as long whatever its size, so large budgets have larger ones, and small ones never do.
TEST(ChunkSize, GrowsWithTheBudgetByPowersOfTwo) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, 0, 1024), 2 * kMiB);
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, 4096 * kMiB - 1, 1024), 2 * kMiB);
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, 4096 * kMiB, 1024), 4 * kMiB);
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, 10'400 * kMiB, 1024), 8 * kMiB);
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, 10'400 * kMiB, 2048), 4 * kMiB);
  EXPECT_EQ(chunk_bytes_for(2 * kMiB, uint64_t{1} << 60, 1024), kLargestChunk);
  EXPECT_EQ(chunk_bytes_for(64 * kMiB, uint64_t{1} << 60, 1024), 64 * kMiB) << "what the device asks for comes first";
  EXPECT_EQ(chunk_bytes_for(0, uint64_t{1} << 60, 1024), 0u);
}

TEST(ChunkSize, OfAPlanIsOneThatTheDeviceHas) {
  EXPECT_TRUE(is_chunk(8 << 20, 2 << 20));
  EXPECT_TRUE(is_chunk(2 << 20, 2 << 20));
  EXPECT_FALSE(is_chunk(1 << 20, 2 << 20));
  EXPECT_FALSE(is_chunk(6 << 20, 2 << 20));
  EXPECT_FALSE(is_chunk(8 << 20, 0));
}

}  // namespace
}  // namespace reprise::footprint

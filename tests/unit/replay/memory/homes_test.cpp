// While everything fits: ranges keep their homes, so a program that repeats itself finds all of them mapped, within no
// more chunks than live at once.
#include "replay/memory/addresses/homes.h"

#include <rapidcheck.h>

#include "replay/memory/pager.h"
#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

using Places = std::vector<Place>;

TEST(HomesTest, AFreedHomeIsFreeWhileNobodyHasItsPlaces) {
  Homes homes;
  homes.reset(UINT64_MAX);
  homes.settle(10, 2);
  homes.settle(20, 1);
  EXPECT_EQ(*homes.of(10), (Places{1, 2}));
  EXPECT_EQ(*homes.of(20), Places{3});
  EXPECT_EQ(homes.taken(), 3u);
  homes.leave(10);
  homes.leave(10);
  EXPECT_TRUE(homes.is_free(10));
  EXPECT_FALSE(homes.is_free(20));
  EXPECT_FALSE(homes.is_free(30));
  homes.settle(30, 1);
  EXPECT_EQ(*homes.of(30), Places{1}) << "the place that has been free for longest";
  EXPECT_FALSE(homes.is_free(10));
  homes.leave(30);
  homes.take(10);
  EXPECT_FALSE(homes.is_free(30));
  EXPECT_EQ(homes.taken(), 3u);
}

TEST(HomesTest, AnotherHomeTakesTheOldOnesPlace) {
  Homes homes;
  homes.reset(UINT64_MAX);
  homes.settle(10, 1);
  homes.leave(10);
  homes.settle(20, 1);
  homes.settle(10, 1);
  EXPECT_EQ(*homes.of(10), Places{2});
  EXPECT_LT(homes.last_taken(20), homes.last_taken(10));
}

TEST(HomesTest, TooManyHomesAreForgottenWhenTheyAreFree) {
  Homes homes;
  homes.reset(3);
  homes.settle(10, 1);
  homes.settle(20, 1);
  homes.leave(10);
  EXPECT_FALSE(homes.is_crowded(1));
  EXPECT_TRUE(homes.is_crowded(2));
  homes.forget_freed();
  EXPECT_EQ(homes.of(10), nullptr);
  EXPECT_NE(homes.of(20), nullptr);
  EXPECT_FALSE(homes.is_crowded(2));
}

constexpr uint64_t kChunk = 4096;

TEST(AddressesTest, TheLowestRangeIsAllocatedWhoseHomeIsFree) {
  Addresses addresses;
  addresses.open(cut_arena(1 << 20, 1 << 22, kChunk), kChunk);
  const CUdeviceptr a = addresses.allocate(kChunk, 4), b = addresses.allocate(kChunk, 4);
  addresses.release(a, kChunk);
  addresses.release(b, kChunk);
  const CUdeviceptr both = addresses.allocate(2 * kChunk, 4);
  const CUdeviceptr third = addresses.allocate(kChunk, 4);
  EXPECT_NE(third, a) << "its place is taken";
  EXPECT_NE(third, b);
  addresses.release(both, 2 * kChunk);
  EXPECT_EQ(addresses.allocate(kChunk, 4), a);
  EXPECT_EQ(addresses.allocate(kChunk, 4), b);
}

TEST(AddressesTest, NothingIsAtHomeWhereNotEverythingFits) {
  Addresses addresses;
  addresses.open(cut_arena(1 << 20, 1 << 22, kChunk), kChunk);
  Places home;
  const CUdeviceptr small = addresses.allocate(8, 2), large = addresses.allocate(kChunk, 2);
  addresses.home_of(small, &home);
  EXPECT_EQ(home, Places{1});
  addresses.home_of(large, &home);
  EXPECT_EQ(home, Places{2});
  const CUdeviceptr beside = addresses.allocate(8, 2);
  EXPECT_EQ(beside / kChunk, small / kChunk) << "a block has room for more";
  addresses.release(large, kChunk);
  const CUdeviceptr more = addresses.allocate(2 * kChunk, 2);
  addresses.home_of(more, &home);
  EXPECT_EQ(home, Places{});
  EXPECT_EQ(addresses.allocate(kChunk, 2), large) << "the range that was released last";
}

// A program's steps without its kernels, at the dispatcher.
struct Steps {
  Steps(uint64_t limit, testing::Safety safety)
      : device(limit, HostTier::kSlotUnit, 64 * HostTier::kSlotUnit, safety), pager(&device.memory) {
    addresses.open(device.memory.arena, device.chunk_bytes);
    pager.hooks.homes = &homes;
  }
  CUdeviceptr allocate(uint64_t chunks) {
    const CUdeviceptr base = addresses.allocate(chunks * device.chunk_bytes, device.memory.chunks.limit());
    auto* const made = device.memory.tensors.insert(base, chunks * device.chunk_bytes, static_cast<uint32_t>(chunks));
    EXPECT_EQ(pager.allocated(*made, kNoLane), CUDA_SUCCESS);
    EXPECT_EQ(pager.make_resident({made}), CUDA_SUCCESS);
    return base;
  }
  void free(CUdeviceptr base, uint64_t chunks) {
    pager.forget(*device.memory.tensors.find(base));
    addresses.release(base, chunks * device.chunk_bytes);
  }
  size_t mapping_calls() { return device.memory.mappings.driver_calls(); }

  testing::SmallDevice device;
  Addresses addresses;
  HomeChunks homes{&device.memory.chunks, &addresses};
  Pager pager;
};

struct Step {
  size_t slot;
  uint64_t chunks;  // 0: frees
};

// What an iteration allocates it frees, in any order; the most chunks at once in *peak.
std::vector<Step> any_iteration(uint64_t* peak) {
  std::vector<Step> steps;
  std::vector<std::pair<size_t, uint64_t>> live;
  uint64_t now = *peak;
  const auto free_one = [&] {
    const auto gone = live.begin() + testing::uniform<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(live.size()));
    steps.push_back({gone->first, 0});
    now -= gone->second;
    live.erase(gone);
  };
  const int count = testing::uniform(2, 40);
  for (int i = 0; i < count; ++i) {
    if (!live.empty() && testing::one_in(2)) {
      free_one();
      continue;
    }
    const uint64_t chunks = testing::uniform<uint64_t>(1, 5);
    steps.push_back({static_cast<size_t>(i), chunks});
    live.emplace_back(i, chunks);
    *peak = std::max(*peak, now += chunks);
  }
  while (!live.empty()) free_one();
  return steps;
}

TEST(HomesPropertyTest, IterationsOfOneKindMapNothingWithinTheirPeak) {
  for (const testing::Safety safety : {testing::Safety::strict, testing::Safety::trusted}) {
    EXPECT_TRUE(rc::check("the fifth iteration makes no mapping call", [safety] {
      const auto persistent = testing::uniform<uint64_t>(0, 4);
      uint64_t peak = persistent;
      const std::vector<Step> iteration = any_iteration(&peak);
      Steps program(peak, safety);
      for (uint64_t i = 0; i < persistent; ++i) program.allocate(1);
      std::vector<std::pair<CUdeviceptr, uint64_t>> slots(iteration.size());
      for (int round = 0; round < 8; ++round) {
        const size_t before = program.mapping_calls();
        for (const Step& step : iteration) {
          auto& [base, chunks] = slots[step.slot];
          if (step.chunks == 0) {
            program.free(base, chunks);
          } else {
            chunks = step.chunks;
            base = program.allocate(chunks);
          }
          RC_ASSERT(program.device.memory.chunks.existing() <= peak);
        }
        RC_ASSERT(round < 4 || program.mapping_calls() == before);
      }
      RC_ASSERT(program.device.memory.traffic.offloaded_bytes == 0);
      RC_ASSERT(program.device.driver.violations.empty());
    }));
  }
}

// What sits in other chunks than those of its home goes there again when they are free.
TEST(HomeChunksTest, ARangeGoesHomeAgain) {
  Steps program(2, testing::Safety::strict);
  ManagedMemory& memory = program.device.memory;
  const CUdeviceptr a = program.allocate(1), b = program.allocate(1);
  const std::vector<ChunkIndex> home = memory.mappings.find(a)->chunks;
  program.free(a, 1);
  CUresult refused = CUDA_SUCCESS;
  const ChunkIndex other = memory.chunks.take_free(&refused);  // a plan's
  EXPECT_EQ(std::vector{other}, home);
  program.free(b, 1);
  EXPECT_EQ(program.allocate(1), a);
  EXPECT_NE(memory.mappings.find(a)->chunks, home) << "somebody is there";
  program.free(a, 1);
  memory.chunks.give_back(other);
  EXPECT_EQ(program.allocate(1), a);
  EXPECT_EQ(memory.mappings.find(a)->chunks, home);
}

}  // namespace
}  // namespace reprise::replay

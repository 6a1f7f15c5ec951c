// Mappings on a fake driver: which calls are made in which order, what a refused call leaves behind, and that the page
// table is what the class says it is.
#include "replay/memory/mappings.h"

#include <rapidcheck.h>

#include "tests/support/test.h"
#include "tests/unit/replay/memory/small_device.h"
#include "tests/unit/replay/uniform.h"

namespace reprise::replay {
namespace {

using Calls = std::vector<std::string>;

class MappingsTest : public ::testing::Test {
 protected:
  MappingsTest() : chunks_(device_.take(8)), base_(device_.memory.arena.ranges.base) { device_.driver.clear(); }
  ~MappingsTest() override { EXPECT_EQ(device_.driver.violations, Calls{}); }

  CUdeviceptr at(uint64_t chunk) const { return base_ + chunk * device_.chunk_bytes; }
  std::vector<ChunkIndex> some(std::initializer_list<size_t> which) const {
    std::vector<ChunkIndex> found;
    for (const size_t index : which) found.push_back(chunks_[index]);
    return found;
  }
  const Calls& calls() const { return device_.driver.calls(); }

  testing::SmallDevice device_{16};
  std::vector<ChunkIndex> chunks_;
  CUdeviceptr base_;
  Mappings& mappings_ = device_.memory.mappings;
};

TEST_F(MappingsTest, MapsChunkByChunkAndSetsAccessOnce) {
  EXPECT_EQ(mappings_.map(base_, some({4, 1, 6})), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuMemMap", "cuMemMap", "cuMemMap", "cuMemSetAccess"}));
  const std::map<CUdeviceptr, CUmemGenericAllocationHandle> expected = {
      {at(0), device_.handle(chunks_[4])}, {at(1), device_.handle(chunks_[1])}, {at(2), device_.handle(chunks_[6])}};
  EXPECT_EQ(device_.driver.page_table(), expected);
  EXPECT_EQ(mappings_.mapped_chunks(), 3u);
  EXPECT_EQ(mappings_.driver_calls(), 4u);
  ASSERT_NE(mappings_.find(base_), nullptr);
  EXPECT_EQ(mappings_.find(base_)->chunks, some({4, 1, 6}));
  EXPECT_EQ(mappings_.find(at(1)), nullptr) << "found by its start alone";
}

TEST_F(MappingsTest, AccessComesInPieces) {
  EXPECT_EQ(mappings_.begin(base_, some({0, 1, 2, 3, 4})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.extend(base_, 5), CUDA_SUCCESS);
  for (const size_t reached : {2u, 4u, 5u}) {
    EXPECT_FALSE(mappings_.find(base_)->accessible);
    EXPECT_EQ(mappings_.grant(base_, 2), CUDA_SUCCESS);
    EXPECT_EQ(device_.driver.page_table().size(), reached);
  }
  EXPECT_TRUE(mappings_.find(base_)->accessible);
  // Refused midway, nothing is left.
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.begin(base_, some({0, 1, 2})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.extend(base_, 3), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.grant(base_, 1), CUDA_SUCCESS);
  device_.driver.fail("cuMemSetAccess", 1);
  EXPECT_EQ(mappings_.grant(base_, 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(mappings_.find(base_), nullptr);
  EXPECT_TRUE(device_.driver.page_table().empty());
  EXPECT_EQ(mappings_.mapped_chunks(), 0u);
}

TEST_F(MappingsTest, ARefusedCallLeavesNothingMapped) {
  const std::vector<std::pair<std::string, int>> faults = {
      {"cuMemMap", 1}, {"cuMemMap", 2}, {"cuMemMap", 3}, {"cuMemSetAccess", 1}};
  for (const auto& [function, nth] : faults) {
    device_.driver.fail(function, nth);
    EXPECT_EQ(mappings_.map(base_, some({0, 1, 2})), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_TRUE(device_.driver.page_table().empty()) << function << nth;
    EXPECT_EQ(mappings_.find(base_), nullptr);
    EXPECT_EQ(mappings_.mapped_chunks(), 0u);
    EXPECT_EQ(mappings_.map(base_, some({0, 1, 2})), CUDA_SUCCESS) << "and can be mapped later";
    EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  }
}

TEST_F(MappingsTest, WhatIsRefusedMidwayIsKnownToBeStillThere) {
  device_.driver.unmaps_whole_ranges = false;
  ASSERT_EQ(mappings_.map(base_, some({0, 1, 2})), CUDA_SUCCESS);
  device_.driver.fail("cuMemUnmap", 3);  // the whole range, the first chunk, the second
  EXPECT_EQ(mappings_.unmap(base_), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(device_.driver.page_table().size(), 2u);
  EXPECT_EQ(mappings_.mapped_chunks(), 2u);
  EXPECT_EQ(mappings_.find(base_), nullptr) << "there is a hole";
  EXPECT_EQ(mappings_.make_room(base_, 3 * device_.chunk_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.map(base_, some({3, 4, 5})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  // The way back of a mapping that was refused.
  device_.driver.fail("cuMemSetAccess", 1);
  device_.driver.fail("cuMemUnmap", 1);
  EXPECT_EQ(mappings_.map(base_, some({0, 1})), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(mappings_.mapped_chunks(), 2u);
  EXPECT_EQ(mappings_.make_room(base_ - device_.chunk_bytes, 2 * device_.chunk_bytes), CUDA_SUCCESS);
  EXPECT_TRUE(device_.driver.page_table().empty());
}

TEST_F(MappingsTest, ABusyDriverIsAskedForAccessAgainWhenItsWorkIsDone) {
  device_.driver.fail("cuMemSetAccess", 1, CUDA_ERROR_NOT_READY);
  device_.driver.fail("cuMemSetAccess", 2, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(mappings_.map(base_, some({0})), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuMemMap", "cuMemSetAccess", "cuCtxSynchronize", "cuMemSetAccess", "cuCtxSynchronize",
                            "cuMemSetAccess"}));
  for (const int nth : {1, 2, 3}) device_.driver.fail("cuMemSetAccess", nth, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(mappings_.map(at(4), some({1})), CUDA_ERROR_NOT_READY) << "not for ever";
  EXPECT_EQ(device_.driver.page_table().size(), 1u);
}

TEST_F(MappingsTest, UnmapsInOneCallAfterTheWorkThatUsedTheAddresses) {
  ASSERT_EQ(mappings_.map(base_, some({0, 1})), CUDA_SUCCESS);
  const LaneIndex lane = device_.new_lane();
  const LaneUse use = device_.work(lane, [&] { device_.driver.write(at(1), 7); });
  mappings_.find(base_)->uses.add(use.lane, use.position);
  device_.driver.clear();
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuMemUnmap"}));
  EXPECT_TRUE(device_.driver.idle());
  EXPECT_EQ(mappings_.mapped_chunks(), 0u);
}

TEST_F(MappingsTest, WhatIsNotMappedCostsNoCall) {
  ASSERT_EQ(mappings_.map(base_, some({0, 1})), CUDA_SUCCESS);
  device_.driver.clear();
  EXPECT_EQ(mappings_.unmap(at(1)), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.unmap(at(5)), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.make_room(base_, 2 * device_.chunk_bytes), CUDA_SUCCESS) << "exactly this range is its own";
  EXPECT_EQ(mappings_.make_room(at(2), 3 * device_.chunk_bytes), CUDA_SUCCESS) << "neighbours do not overlap";
  EXPECT_EQ(mappings_.unmap_chunk(chunks_[3]), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{});
}

TEST_F(MappingsTest, AWaitThatFailsUnmapsNothing) {
  ASSERT_EQ(mappings_.map(base_, some({0})), CUDA_SUCCESS);
  const LaneUse use = device_.work(device_.new_lane(), [&] { device_.driver.read(base_); });
  mappings_.find(base_)->uses.add(use.lane, use.position);
  device_.driver.fail("cuEventSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(mappings_.unmap(base_), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(device_.driver.count("cuMemUnmap"), 0u);
  EXPECT_NE(mappings_.find(base_), nullptr);
}

// A range may be hidden, or only be read, and keeps its chunks.
TEST_F(MappingsTest, RightsChangeAndChunksStay) {
  ASSERT_EQ(mappings_.map(base_, some({2, 0})), CUDA_SUCCESS);
  const auto rights = [&] { return Mappings::rights_of(*mappings_.find(base_)); };
  EXPECT_EQ(rights(), Rights::write);
  device_.driver.clear();
  EXPECT_EQ(mappings_.set_rights(base_, Rights::none), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls{"cuMemUnmap"});
  EXPECT_TRUE(device_.driver.page_table().empty());
  EXPECT_EQ(rights(), Rights::none);
  EXPECT_EQ(mappings_.mapped_chunks(), 0u);
  device_.driver.clear();
  EXPECT_EQ(mappings_.set_rights(base_, Rights::read), CUDA_SUCCESS);
  EXPECT_EQ(calls(), (Calls{"cuMemMap", "cuMemMap", "cuMemSetAccess"}));
  EXPECT_EQ(rights(), Rights::read);
  EXPECT_EQ(mappings_.find(base_)->chunks, some({2, 0}));
  device_.driver.clear();
  EXPECT_EQ(mappings_.set_rights(base_, Rights::write), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.set_rights(base_, Rights::write), CUDA_SUCCESS) << "costs nothing";
  EXPECT_EQ(calls(), Calls{"cuMemSetAccess"});
  EXPECT_EQ(mappings_.set_rights(base_, Rights::none), CUDA_SUCCESS);
  device_.driver.fail("cuMemMap", 2);
  EXPECT_EQ(mappings_.set_rights(base_, Rights::write), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(rights(), Rights::none) << "and knows its chunks still";
  EXPECT_EQ(mappings_.set_rights(base_, Rights::write), CUDA_SUCCESS);
  device_.driver.fail("cuMemSetAccess", 1);
  EXPECT_EQ(mappings_.set_rights(base_, Rights::read), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(rights(), Rights::none);
  EXPECT_EQ(mappings_.set_rights(at(5), Rights::read), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS) << "a hidden range goes as any other";
  EXPECT_EQ(mappings_.find(base_), nullptr);
}

TEST_F(MappingsTest, ARefusedUnmapKeepsTheMapping) {
  ASSERT_EQ(mappings_.map(base_, some({0, 1})), CUDA_SUCCESS);
  device_.driver.fail("cuMemUnmap", 1, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(mappings_.unmap(base_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(mappings_.mapped_chunks(), 2u);
  EXPECT_EQ(device_.driver.page_table().size(), 2u);
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  EXPECT_TRUE(device_.driver.page_table().empty());
}

TEST_F(MappingsTest, ADriverThatUnmapsOneMappingACallIsObeyed) {
  device_.driver.unmaps_whole_ranges = false;
  ASSERT_EQ(mappings_.map(base_, some({0, 1, 2})), CUDA_SUCCESS);
  device_.driver.clear();
  EXPECT_EQ(mappings_.unmap(base_), CUDA_SUCCESS);
  EXPECT_EQ(calls(), Calls(4, "cuMemUnmap"));
  EXPECT_TRUE(device_.driver.page_table().empty());
}

TEST_F(MappingsTest, MakesRoomOfEverythingThatOverlaps) {
  // Chunks 0-2, 3-4, 5-7 of the range are mapped; 2-5 is wanted.
  ASSERT_EQ(mappings_.map(base_, some({0, 1, 2})), CUDA_SUCCESS);
  ASSERT_EQ(mappings_.map(at(3), some({3, 4})), CUDA_SUCCESS);
  ASSERT_EQ(mappings_.map(at(5), some({5, 6, 7})), CUDA_SUCCESS);
  ASSERT_EQ(mappings_.map(at(8), some({0})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.make_room(at(2), 4 * device_.chunk_bytes), CUDA_SUCCESS);
  EXPECT_EQ(device_.driver.page_table().size(), 1u);
  EXPECT_NE(mappings_.find(at(8)), nullptr);
  EXPECT_EQ(mappings_.map(at(2), some({1, 2, 3, 4})), CUDA_SUCCESS);
}

TEST_F(MappingsTest, AnotherRangeAtTheSameStartOverlapsToo) {
  ASSERT_EQ(mappings_.map(base_, some({0, 1})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.make_room(base_, device_.chunk_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.find(base_), nullptr);
}

TEST_F(MappingsTest, UnmapsEveryAliasOfAChunk) {
  ASSERT_EQ(mappings_.map(base_, some({0, 1})), CUDA_SUCCESS);
  ASSERT_EQ(mappings_.map(at(4), some({1, 2})), CUDA_SUCCESS);
  ASSERT_EQ(mappings_.map(at(8), some({2, 3})), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.unmap_chunk(chunks_[1]), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.find(base_), nullptr);
  EXPECT_EQ(mappings_.find(at(4)), nullptr);
  EXPECT_NE(mappings_.find(at(8)), nullptr);
  EXPECT_EQ(mappings_.mapped_chunks(), 2u);
}

// Twelve starts a few chunks apart, so that ranges overlap; calls may be refused. The page table is always the model's.
TEST(MappingsPropertyTest, ThePageTableIsTheModel) {
  EXPECT_TRUE(rc::check("the driver's page table is what was asked for", [] {
    testing::SmallDevice device(12);
    Mappings& mappings = device.memory.mappings;
    const std::vector<ChunkIndex> chunks = device.take(12);
    const CUdeviceptr base = device.memory.arena.ranges.base;
    const LaneIndex lane = device.new_lane();
    std::map<CUdeviceptr, std::vector<ChunkIndex>> model;
    const auto end_of = [&](const auto& range) { return range.first + range.second.size() * device.chunk_bytes; };
    const int steps = testing::uniform(1, 60);
    for (int step = 0; step < steps; ++step) {
      static const char* const functions[] = {"cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuEventSynchronize"};
      device.driver.heal();
      const bool faulty = testing::one_in(5);
      if (faulty) device.driver.fail(functions[testing::uniform(0, 4)], testing::uniform(1, 4));
      const CUdeviceptr start = base + testing::uniform<uint64_t>(0, 12) * device.chunk_bytes;
      const auto count = testing::uniform<uint64_t>(1, 5);
      const CUdeviceptr end = start + count * device.chunk_bytes;
      CUresult result = CUDA_SUCCESS;
      switch (testing::uniform(0, 4)) {
        case 0: {  // the pager's way: make room, unmap what is there, map
          result = mappings.make_room(start, count * device.chunk_bytes);
          if (result == CUDA_SUCCESS) {
            std::erase_if(model, [&](const auto& range) {
              return range.first < end && end_of(range) > start && !(range.first == start && end_of(range) == end);
            });
            result = mappings.unmap(start);
          }
          if (result != CUDA_SUCCESS) break;
          model.erase(start);
          std::vector<ChunkIndex> wanted;
          for (uint64_t i = 0; i < count; ++i) wanted.push_back(testing::one_of(chunks));
          result = mappings.map(start, wanted);
          if (result == CUDA_SUCCESS) model[start] = wanted;
          break;
        }
        case 1:
          result = mappings.unmap(start);
          if (result == CUDA_SUCCESS) model.erase(start);
          break;
        case 2: {
          const ChunkIndex chunk = testing::one_of(chunks);
          result = mappings.unmap_chunk(chunk);
          if (result == CUDA_SUCCESS) {
            std::erase_if(model, [&](const auto& range) {
              return std::find(range.second.begin(), range.second.end(), chunk) != range.second.end();
            });
          }
          break;
        }
        case 3:  // work that touches a whole mapping, later
          if (Mapping* const mapping = mappings.find(start); mapping != nullptr) {
            const LaneUse use = device.work(lane, [&device, start, size = mapping->chunks.size()] {
              for (uint64_t i = 0; i < size; ++i) device.driver.read(start + i * device.chunk_bytes);
            });
            mapping->uses.add(use.lane, use.position);
          }
          break;
      }
      RC_ASSERT(faulty || result == CUDA_SUCCESS);
      if (result != CUDA_SUCCESS) {  // some of several may be gone: what is left is as it was
        for (auto range = model.begin(); range != model.end();) {
          const Mapping* const kept = mappings.find(range->first);
          if (kept != nullptr) RC_ASSERT(kept->chunks == range->second);
          range = kept == nullptr ? model.erase(range) : std::next(range);
        }
      }
      std::map<CUdeviceptr, CUmemGenericAllocationHandle> expected;
      uint64_t mapped = 0;
      for (const auto& [first, backing] : model) {
        for (uint64_t i = 0; i < backing.size(); ++i)
          expected[first + i * device.chunk_bytes] = device.handle(backing[i]);
        mapped += backing.size();
      }
      RC_ASSERT(device.driver.page_table() == expected);
      RC_ASSERT(mappings.mapped_chunks() == mapped);
      RC_ASSERT(mappings.all().size() == model.size());
    }
    device.driver.run_all();
    RC_ASSERT(device.driver.violations.empty());
  }));
}

}  // namespace
}  // namespace reprise::replay
